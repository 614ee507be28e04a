// Live traffic and the counts of the A/B split, asked for every two seconds while they are looked at.
import { get, Refused } from "./api.js";
import { $, fill, make, number, percent, say } from "./dom.js";

const EVERY = 2000;
const KEPT = 60;
const rates = [];
let before = null;
let timer = 0;

export function watch(on) {
  clearInterval(timer);
  if (!on) return;
  before = null;
  look();
  timer = setInterval(look, EVERY);
}

async function look() {
  if (document.hidden) return;
  try {
    const now = await get("/stats");
    show(now);
    before = now;
  } catch (why) {
    if (!(why instanceof Refused)) throw why;
    say(why.message);
  }
}

const total = (counts) => Object.values(counts).reduce((sum, count) => sum + count, 0);
const seconds = (value) => (value === undefined ? "–" : value < 1 ? `${(1000 * value).toFixed(1)} ms` : `${value.toFixed(2)} s`);

function show(now) {
  const answers = now.answers["/recommend"] || 0;
  if (before && now.time > before.time) {
    const rate = Math.max(0, answers - (before.answers["/recommend"] || 0)) / (now.time - before.time);
    rates.push(rate);
    rates.splice(0, rates.length - KEPT);
    $("rate").textContent = rate < 10 ? rate.toFixed(1) : number(Math.round(rate));
    draw();
  }
  $("answers").textContent = number(answers);
  $("failed").textContent = number(total(now.failed));
  $("median").textContent = seconds(now.seconds["0.5"]);
  $("p99").textContent = seconds(now.seconds["0.99"]);
  fill($("arms"), ...now.arms.map(arm));
}

function draw() {
  const top = Math.max(...rates, 1);
  const x = (n) => 300 - (rates.length - 1 - n) * (300 / (KEPT - 1));
  const points = rates.map((rate, n) => `${x(n).toFixed(1)},${(56 - 52 * (rate / top)).toFixed(1)}`);
  $("spark").querySelector("path").setAttribute("d", points.length > 1 ? `M${points.join("L")}` : "");
}

function arm(one) {
  const range = wilson(one.clicks, one.impressions);
  const rate = one.impressions ? `${((1000 * one.clicks) / one.impressions).toFixed(1)}` : "–";
  const detail = range ? make("small", {}, `[${(1000 * range[0]).toFixed(1)}, ${(1000 * range[1]).toFixed(1)}]`) : null;
  return make("tr", {}, make("th", { scope: "row" }, one.model), make("td", {}, percent(one.share)), make("td", {}, number(one.impressions)), make("td", {}, number(one.clicks)), make("td", {}, rate, detail));
}

// Wilson's 95 % interval of a share; null without trials.
export function wilson(hits, trials) {
  if (!trials || hits > trials) return null;
  const z = 1.96;
  const share = hits / trials;
  const middle = (share + (z * z) / (2 * trials)) / (1 + (z * z) / trials);
  const half = (z / (1 + (z * z) / trials)) * Math.sqrt((share * (1 - share)) / trials + (z * z) / (4 * trials * trials));
  return [Math.max(0, middle - half), Math.min(1, middle + half)];
}
