// One item: its labels and the items most like it.
import { get, latest, Refused } from "./api.js";
import { combobox } from "./combobox.js";
import { $, bar, choices, fill, labelled, make, say, titleOf } from "./dom.js";
import { findItems } from "./person.js";

const asking = latest();
let current = "";

export function start(models) {
  choices($("item-model"), models);
  const go = (id) => (location.hash = `#/item?item=${encodeURIComponent(id)}`);
  combobox($("one"), findItems, (one) => go(one.value.item));
  $("one").form.addEventListener("submit", (event) => event.preventDefault());
  $("item-model").addEventListener("change", () => show());
}

export async function open(query) {
  current = query.get("item") || "";
  await show();
}

async function show() {
  if (!current) return;
  try {
    const answer = await asking((signal) => get("/similar", { item: current, k: 12, model: $("item-model").value }, signal));
    if (!answer) return;
    say("");
    $("one").value = titleOf(answer.item);
    const facts = Object.entries(answer.item).flatMap(([name, value]) => (value === null || name === "title" ? [] : [make("dt", {}, name), make("dd", {}, [].concat(value).join(", "))]));
    const liked = make("a", { href: `#/person?liked=${encodeURIComponent(answer.item.item)}` }, "Recommend to somebody who likes it");
    fill($("about"), make("h3", {}, titleOf(answer.item)), make("dl", {}, ...facts), make("p", {}, liked));
    fill($("neighbours"), ...answer.items.map(neighbour));
  } catch (why) {
    if (!(why instanceof Refused)) throw why;
    fill($("about"));
    fill($("neighbours"));
    say(why.message);
  }
}

function neighbour(one) {
  const open = make("button", { type: "button", class: "plain title", onclick: () => (location.hash = `#/item?item=${encodeURIComponent(one.item)}`) }, titleOf(one));
  const details = labelled(one);
  return make("li", {}, open, make("span", { class: "score" }, one.score.toFixed(2)), bar(one.score), details ? make("span", { class: "more" }, details) : null);
}
