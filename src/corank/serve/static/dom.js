// Elements from plain values. Text is always text: nothing that comes from data is read as HTML.
export const $ = (id) => document.getElementById(id);

export function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

export const fill = (element, ...children) => element.replaceChildren(...children.filter(Boolean));
export const titleOf = (item) => item.title || String(item.item);
export const number = (value) => value.toLocaleString("en");
export const percent = (share) => `${Math.round(100 * share)} %`;

export function bar(share) {
  const inner = make("span");
  inner.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  return make("div", { class: "bar", "aria-hidden": "true" }, inner);
}

// Models to choose from, after the choices that are there.
export function choices(select, models) {
  const named = (one) => (one.kind === one.name ? one.name : `${one.name} (${one.kind})`);
  select.append(...models.map((one) => make("option", { value: one.name }, named(one))));
}

// A label in a short text: Comedy, Drama; a number says what it is, unless it is a year.
function label(name, value) {
  if (typeof value === "boolean") return value ? name : `not ${name}`;
  if (typeof value === "number" && !/year/i.test(name)) return `${name} ${value}`;
  return [].concat(value).join(", ");
}

// The labels of an item as a short text: 1995 · Comedy, Drama
export function labelled(item) {
  const own = ["item", "title", "score", "rows", "reasons"];
  return Object.entries(item)
    .filter(([name, value]) => !own.includes(name) && value !== null && value !== "")
    .map(([name, value]) => label(name, value))
    .join(" · ");
}

export function say(text, bad = true) {
  const place = $("message");
  place.textContent = text || "";
  place.hidden = !text;
  place.classList.toggle("bad", bad);
}
