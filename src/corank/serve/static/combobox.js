// A text field with suggestions, by keyboard and pointer (the combobox pattern of the ARIA practices).
import { latest, Refused } from "./api.js";
import { fill, make, say } from "./dom.js";

const PAUSE = 120; // milliseconds without a key before the service is asked

export function combobox(input, find, choose, otherwise) {
  // find(text, signal) -> [{ value, text, hint }]; choose(one) is called with the suggestion that was taken,
  // otherwise(text) with a text that has none
  const list = document.getElementById(input.getAttribute("aria-controls"));
  const search = latest();
  let found = [];
  let at = -1;
  let timer = 0;

  function open(suggestions) {
    found = suggestions;
    at = -1;
    fill(
      list,
      ...found.map((one, n) =>
        make(
          "li",
          { id: `${list.id}-${n}`, role: "option", "aria-selected": "false", onpointerdown: (e) => take(n, e) },
          make("span", {}, one.text),
          one.hint ? make("small", {}, one.hint) : null,
        ),
      ),
    );
    show(found.length > 0);
  }

  function show(visible) {
    list.hidden = !visible;
    input.setAttribute("aria-expanded", String(visible));
    if (!visible) input.removeAttribute("aria-activedescendant");
  }

  function move(to) {
    at = (to + found.length) % found.length;
    [...list.children].forEach((child, n) => child.setAttribute("aria-selected", String(n === at)));
    input.setAttribute("aria-activedescendant", `${list.id}-${at}`);
    list.children[at].scrollIntoView({ block: "nearest" });
  }

  function take(n, event) {
    if (event) event.preventDefault();
    show(false);
    choose(found[n]);
  }

  async function suggest() {
    try {
      const suggestions = await search((signal) => find(input.value.trim(), signal));
      if (suggestions && document.activeElement === input) open(suggestions);
    } catch (why) {
      if (!(why instanceof Refused)) throw why;
      say(why.message);
    }
  }

  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(suggest, PAUSE);
  });
  input.addEventListener("focus", suggest);
  input.addEventListener("blur", () => show(false));
  input.addEventListener("keydown", async (event) => {
    if (event.key === "Escape") show(false);
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (list.hidden) await suggest();
      else if (found.length) move(event.key === "ArrowDown" ? at + 1 : at < 0 ? -1 : at - 1);
    } else if (event.key === "Enter") {
      event.preventDefault();
      clearTimeout(timer);
      if (list.hidden || at < 0) {
        const suggestions = await search((signal) => find(input.value.trim(), signal)).catch(() => []);
        found = suggestions || found;
        at = 0;
      }
      if (found.length) take(Math.max(at, 0));
      else if (otherwise && input.value.trim()) otherwise(input.value.trim());
      else say(`Nothing is called “${input.value.trim()}”.`);
    }
  });
}
