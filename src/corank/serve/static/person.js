// Recommendations for a user or for things that are liked, with reasons, by one model or by two.
import { get, latest, post, Refused, token } from "./api.js";
import { combobox } from "./combobox.js";
import { $, bar, choices, fill, labelled, make, number, percent, say, titleOf } from "./dom.js";
import { offer, rules } from "./filters.js";

const REASONS = 3; // shown per item
const KINDS = {
  exact: "The shares add up to the score.",
  decomposition: "The shares are parts of the score.",
  "leave-one-out": "The shares tell how much the score changes without an item.",
  attention: "The shares tell how much attention an item gets.",
};
const state = { user: "", liked: [] };
const asking = latest();
let models = [];
let writable = false;

export function start(options, served) {
  writable = options.writable;
  models = served;
  choices($("model"), models);
  choices($("second"), models);
  offer(models[0], () => ask());
  // Users who are known by their feedback alone have no suggestion.
  const open = (user) => go({ user, liked: [] });
  combobox($("user"), findUsers, (one) => open(one.value), open);
  combobox($("liked"), findItems, (one) => {
    $("liked").value = "";
    go({ user: "", liked: [...state.liked.filter((item) => item.item !== one.value.item), one.value] });
  });
  $("ask").addEventListener("submit", (event) => event.preventDefault());
  for (const id of ["model", "second", "k", "diversity"]) $(id).addEventListener("change", () => ask());
  $("model").addEventListener("change", () => offer(model($("model").value), () => ask()));
}

const other = (name) => (models.find((one) => one.name !== name) || models[0]).name;
const model = (name) => models.find((one) => one.name === name) || models[0];

async function findUsers(text, signal) {
  const found = await get("/users", { q: text, k: 8, model: $("model").value }, signal);
  return found.users.map((one) => ({ value: String(one.user), text: String(one.user), hint: `${number(one.rows)} rows` }));
}

export async function findItems(text, signal) {
  if (!text) return [];
  const found = await get("/items", { q: text, k: 8 }, signal);
  return found.items.map((one) => ({ value: one, text: titleOf(one), hint: `${number(one.rows)} rows` }));
}

function go(next) {
  Object.assign(state, next);
  const query = new URLSearchParams();
  if (state.user) query.set("user", state.user);
  for (const one of state.liked) query.append("liked", one.item);
  history.replaceState(null, "", `#/person?${query}`);
  ask();
}

// What an address such as #/person?user=5 means.
export async function open(query) {
  const user = query.get("user") || "";
  const wanted = query.getAll("liked");
  const known = new Map(state.liked.map((one) => [String(one.item), one]));
  const liked = [];
  for (const id of wanted) {
    const found = known.get(id) || (await get("/items", { q: id, k: 20 })).items.find((one) => String(one.item) === id);
    if (found) liked.push(found);
  }
  Object.assign(state, { user, liked });
  await ask();
}

function chips() {
  const drop = (one) => () => go({ liked: state.liked.filter((other) => other !== one) });
  const chip = (one) => make("button", { type: "button", "aria-label": `Remove ${titleOf(one)}`, onclick: drop(one) }, `${titleOf(one)} ✕`);
  fill($("chosen"), ...state.liked.map((one) => make("li", {}, chip(one))));
}

async function ask() {
  $("user").value = state.user;
  chips();
  if (!state.user && !state.liked.length) {
    clear();
    $("history-note").hidden = false;
    return;
  }
  try {
    const found = await asking(async (signal) => {
      const past = await known(signal);
      // Models are asked by name, so that looking at this page is no part of the A/B split.
      const first = $("model").value || past.model || models[0].name;
      const second = $("second").value;
      const names = second ? [first === second ? other(second) : first, second] : [first];
      return [past, ...(await Promise.all(names.map((name) => list(name, signal))))];
    });
    if (!found) return;
    const [past, ...lists] = found;
    say("");
    showHistory(past);
    showLists(lists);
  } catch (why) {
    if (!(why instanceof Refused)) throw why;
    clear();
    say(why.message);
  }
}

function clear() {
  fill($("lists"));
  fill($("history"));
  $("agree").hidden = true;
  $("history-title").textContent = "History";
}

async function known(signal) {
  if (!state.user) return { trained: [], feedback: state.liked };
  return get("/history", { user: state.user, model: $("model").value }, signal);
}

function person() {
  return state.user ? { user: state.user } : { history: state.liked.map((one) => one.item) };
}

async function list(name, signal) {
  const body = { ...person(), model: name, k: Number($("k").value), diversity: Number($("diversity").value), where: rules() };
  const answer = await post("/recommend", body, signal);
  const items = answer.items.map((one) => one.item);
  let why = { items: [], kind: "" };
  if (items.length) {
    try {
      why = await post("/explain", { ...person(), items, model: answer.model, k: 50 }, signal);
    } catch (refused) {
      if (!(refused instanceof Refused) || refused.status === 0) throw refused; // a model may have no reasons to give
    }
  }
  const reasons = new Map(why.items.map((one) => [one.item, one.reasons]));
  answer.kind = why.kind;
  for (const one of answer.items) one.reasons = reasons.get(one.item) || [];
  return answer;
}

function showHistory({ trained, feedback }) {
  $("history-note").hidden = true;
  const line = (one, fresh) => make("li", { "data-item": one.item, class: fresh ? "new" : "" }, make("span", {}, titleOf(one)), make("span", { class: "share" }));
  const fresh = state.user ? feedback : [];
  const rest = state.user ? trained : feedback;
  $("history-title").textContent = state.user ? `History of user ${state.user} (${number(trained.length + feedback.length)})` : "Things you like";
  fill($("history"), ...[...fresh].reverse().map((one) => line(one, true)), ...[...rest].reverse().map((one) => line(one, false)));
}

function showLists(lists) {
  const shared = lists.length > 1 ? new Set(lists[0].items.map((one) => one.item).filter((id) => lists[1].items.some((one) => one.item === id))) : new Set();
  const columns = lists.map((answer) => {
    const top = Math.max(...answer.items.map((one) => one.score), 0);
    const kind = model(answer.model).kind;
    const heading = make("h3", {}, kind === answer.model ? kind : `${answer.model} (${kind})`);
    const items = answer.items.map((one, rank) => entry(one, rank, top, answer, shared, lists));
    const empty = items.length ? null : make("p", { class: "hint" }, "Nothing is left to recommend: loosen the filters.");
    return make("div", {}, heading, answer.kind ? make("p", { class: "hint" }, KINDS[answer.kind] || "") : null, make("ol", { class: "ranked", "aria-label": `Recommendations of ${answer.model}` }, ...items), empty);
  });
  $("agree").hidden = lists.length < 2;
  $("agree").textContent = lists.length < 2 ? "" : agreement(lists, shared);
  fill($("lists"), ...columns);
}

function agreement(lists, shared) {
  const length = Math.min(...lists.map((one) => one.items.length));
  let same = 0;
  while (same < length && lists[0].items[same].item === lists[1].items[same].item) same += 1;
  const first = same ? ` The first ${same === 1 ? "one is" : `${same} are`} the same.` : "";
  return `${lists.map((one) => one.model).join(" and ")} agree on ${shared.size} of ${length} items.${first}`;
}

function entry(one, rank, top, answer, shared, lists) {
  const both = shared.has(one.item);
  const place = both && lists.find((list) => list !== answer).items.findIndex((item) => item.item === one.item) + 1;
  const open = make("button", { type: "button", class: "plain title", onclick: () => (location.hash = `#/item?item=${encodeURIComponent(one.item)}`) }, titleOf(one));
  const details = [labelled(one), both ? `number ${place} of the other list` : ""].filter(Boolean).join(" · ");
  const made = make("li", { class: both ? "both" : "" }, open, make("span", { class: "score" }, one.score.toPrecision(3)), top > 0 ? bar(one.score / top) : null, details ? make("span", { class: "more" }, details) : null);
  const speaking = one.reasons.filter((reason) => reason.share > 0.005);
  if (speaking.length) {
    const texts = speaking.slice(0, REASONS).map((reason) => make("li", {}, `${titleOf(reason)} ${percent(reason.share)}`));
    made.append(make("div", { class: "more because" }, make("span", {}, "because of"), make("ul", { class: "reasons" }, ...texts)));
    const point = (on) => () => highlight(on ? speaking : []);
    for (const [event, on] of [["pointerenter", true], ["pointerleave", false], ["focusin", true], ["focusout", false]]) made.addEventListener(event, point(on));
  }
  if (writable && token.get() && state.user) made.append(make("div", { class: "more actions" }, action(one, answer, "like", "Like"), action(one, answer, "hide", "Not for me")));
  return made;
}

function action(one, answer, event, word) {
  const send = async () => {
    try {
      await post("/feedback", { user: state.user, item: one.item, event, model: answer.model });
      await ask();
      say(event === "like" ? `${titleOf(one)} is part of the history now.` : `${titleOf(one)} will not be recommended to this user again.`, false);
    } catch (why) {
      say(why.message);
    }
  };
  return make("button", { type: "button", "aria-label": `${word}: ${titleOf(one)}`, onclick: send }, word);
}

// The items of the history that speak for a recommendation, with their shares.
function highlight(reasons) {
  const shares = new Map(reasons.map((reason) => [String(reason.item), reason.share]));
  let first = null;
  for (const line of $("history").children) {
    const share = shares.get(line.dataset.item);
    line.classList.toggle("speaks", share !== undefined);
    line.querySelector(".share").textContent = share === undefined ? "" : percent(share);
    if (share !== undefined && !first) first = line;
  }
  if (first) $("history").scrollTop = first.offsetTop - $("history").offsetTop - 8;
}
