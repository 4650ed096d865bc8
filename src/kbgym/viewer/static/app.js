// The page: shows the view its address names, and the next one when the address changes.

import { sorry, top } from "./chrome.js";
import { clear } from "./dom.js";
import { onChange, where } from "./router.js";

const VIEWS = {
  "": () => import("./overview.js"),
  store: () => import("./store.js"),
  map: () => import("./map.js"),
  questions: () => import("./questions.js"),
  compare: () => import("./compare.js"),
  live: () => import("./live.js"),
};

let leave = () => {};
let turn = 0;
let lastPage = null;

async function render() {
  const mine = ++turn;
  const { page, params } = where();
  const main = document.getElementById("main");
  leave();
  leave = () => {};
  try {
    const [places, module] = await Promise.all([top(), (VIEWS[page] ?? VIEWS[""])()]);
    if (mine !== turn) return;
    main.className = page || "overview";
    const run = params.run ?? places[0].name;
    const left = await module.show(main, { ...params, run }, places);
    if (mine !== turn) left?.();
    else leave = left ?? (() => {});
    if (mine !== turn) return;
    if (lastPage !== null && lastPage !== page) {
      main.focus({ preventScroll: true });
      scrollTo(0, 0);
    }
    lastPage = page;
  } catch (error) {
    if (mine === turn) clear(main, sorry(error));
  }
  if (mine === turn) document.documentElement.dataset.ready = page || "overview";
}

// "/" goes to the search of the page, as in most tools that have one.
addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest?.("input, textarea, select")) return;
  const box = document.querySelector("main input[type=search]");
  if (box) {
    event.preventDefault();
    box.focus();
    box.select();
  }
});

onChange(render);
render();
