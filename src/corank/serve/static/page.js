// The views of the page and their addresses: #/person?user=5, #/item?item=7, #/board, #/traffic.
import { get, piece, Refused, token } from "./api.js";
import { $, number, say } from "./dom.js";
import * as item from "./item.js";
import * as person from "./person.js";
import { watch } from "./traffic.js";

const views = [...document.querySelectorAll(".view")];

async function show() {
  const [name, query] = location.hash.replace(/^#\/?/, "").split("?");
  const view = views.find((one) => one.id === name) || views[0];
  for (const one of views) one.hidden = one !== view;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#/${view.id}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  watch(view.id === "traffic");
  say("");
  const given = new URLSearchParams(query || "");
  try {
    if (view.id === "person") await person.open(given);
    if (view.id === "item") await item.open(given);
  } catch (why) {
    if (!(why instanceof Refused)) throw why;
    say(why.message);
  }
}

function access(begin) {
  $("token").value = token.get();
  $("login").addEventListener("submit", async (event) => {
    event.preventDefault();
    token.set($("token").value.trim());
    say(token.get() ? "The token is used from now on, in this tab." : "No token is used.", false);
    await begin();
  });
}

async function comparison() {
  $("board-content").innerHTML = await piece("/board");
  $("board-link").hidden = false;
  const figures = $("figures");
  if (figures)
    figures.addEventListener("toggle", () => {
      const frame = figures.querySelector("iframe");
      if (figures.open && !frame.src) frame.src = frame.dataset.src;
    });
}

let started = false;

async function begin() {
  try {
    if (!started) {
      const about = await get("/about");
      const { models } = await get("/models");
      const [first] = models;
      $("served").textContent = `${models.length} model${models.length === 1 ? "" : "s"} · ${number(first.users)} users · ${number(first.items)} items`;
      if (about.board) await comparison();
      person.start(about, models);
      item.start(models);
      started = true;
      window.addEventListener("hashchange", show);
    }
    await show();
    document.body.dataset.ready = "true";
  } catch (why) {
    if (!(why instanceof Refused)) throw why;
    if (why.status === 401) $("access").open = true;
    say(why.message);
  }
}

access(begin);
begin();
