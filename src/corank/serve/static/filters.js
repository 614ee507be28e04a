// Filters over the labels of items, made from what /models says about them.
import { $, fill, make } from "./dom.js";

let labels = [];

export function offer(model, changed) {
  labels = model.labels || [];
  fill($("filters"), ...labels.map((label) => field(label, changed)));
}

function field(label, changed) {
  const id = `filter-${label.name}`;
  if (label.kind === "number") {
    const [low, high] = label.values;
    const ends = [
      ["min", "from", low],
      ["max", "to", high],
    ].map(([end, word, hint]) =>
      make("input", { id: `${id}-${end}`, type: "number", "aria-label": `${label.name} ${word}`, placeholder: hint, onchange: changed }),
    );
    return make("div", { class: "field", role: "group", "aria-label": label.name }, make("label", { for: `${id}-min` }, label.name), make("div", { class: "range" }, ...ends));
  }
  const values = label.kind === "flag" ? ["yes", "no"] : label.values;
  const options = values.map((value) => make("option", { value }, String(value)));
  return make("div", { class: "field" }, make("label", { for: id }, label.name), make("select", { id, onchange: changed }, make("option", { value: "" }, "any"), ...options));
}

// The rules that are chosen, as /recommend takes them; undefined if there are none.
export function rules() {
  const out = {};
  for (const label of labels) {
    const id = `filter-${label.name}`;
    if (label.kind === "number") {
      const ends = {};
      for (const end of ["min", "max"]) if ($(`${id}-${end}`).value !== "") ends[end] = Number($(`${id}-${end}`).value);
      if (Object.keys(ends).length) out[label.name] = ends;
    } else if ($(id).value) out[label.name] = label.kind === "flag" ? $(id).value === "yes" : $(id).value;
  }
  return Object.keys(out).length ? out : undefined;
}
