// What every page has: the bar at the top, pickers, links to views, and how a page says that it waits or failed.

import { get } from "./api.js";
import { add, clear, h } from "./dom.js";
import { PAGES, common, go, to, where } from "./router.js";

/** A link to a view. The address is made of names and ids only, always relative. */
export const view = (page, params, properties, ...children) =>
  h("a", { href: to(page, params), "data-view": "", ...properties }, ...children);

/** A document's id as a link to it. */
export const documentLink = (id, context = {}) =>
  view("store", { ...common(), ...context, doc: id }, { class: "id", title: `open ${id}` }, id);

export async function top() {
  const { page, params } = where();
  const places = await get("places");
  const bar = document.getElementById("top");
  const links = PAGES.map(([name, label]) =>
    view(
      name,
      name === "compare" ? { run: params.run, seed: params.seed } : common(),
      { "aria-current": name === page ? "page" : null },
      label,
    ),
  );
  const picker =
    places.length > 1
      ? select(
          "Run",
          places.map((one) => [one.name, one.name]),
          params.run ?? places[0].name,
          (run) => go(page, { run }),
        )
      : h("span", { class: "only", title: places[0].folder }, places[0].name);
  clear(
    bar,
    h(
      "div",
      { class: "bar" },
      view("", { run: params.run }, { class: "brand", "aria-label": "kbgym, overview" }, "kbgym"),
      h("nav", { "aria-label": "Pages" }, links),
      h("div", { class: "right" }, picker, themeButton()),
    ),
  );
  const current = bar.querySelector("nav [aria-current]");
  if (current) current.parentElement.scrollLeft = current.offsetLeft - 60;
  document.title = `${PAGES.find(([name]) => name === page)?.[1] ?? "kbgym"} · ${params.run ?? places[0].name} · kbgym`;
  return places;
}

function themeButton() {
  const root = document.documentElement;
  const dark = () =>
    root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const button = h("button", {
    type: "button",
    class: "quiet",
    onclick: () => {
      root.dataset.theme = dark() ? "light" : "dark";
      try {
        localStorage.setItem("kbgym-theme", root.dataset.theme);
      } catch {
        /* kept for this page only */
      }
      name();
      dispatchEvent(new Event("themechange"));
    },
  });
  const name = () => {
    button.textContent = dark() ? "Light" : "Dark";
    button.title = `use the ${dark() ? "light" : "dark"} theme`;
  };
  name();
  return button;
}

/** A labelled choice; options are [value, label] pairs. */
export function select(label, options, value, onchange, properties = {}) {
  const chosen = h(
    "select",
    { "aria-label": label, onchange: (event) => onchange(event.target.value), ...properties },
    options.map(([one, name]) => h("option", { value: one, selected: String(one) === String(value) }, name)),
  );
  return h("label", { class: "field" }, h("span", {}, label), chosen);
}

/** The head of a page: what one sees here, in one sentence, and what may be chosen. */
export const head = (title, sentence, ...controls) =>
  h(
    "div",
    { class: "head" },
    h("div", {}, h("h1", {}, title), h("p", { class: "lede" }, sentence)),
    controls.length ? h("div", { class: "controls" }, controls) : null,
  );

/** Pickers of seed and store, where there is more than one. */
export function storePickers(about, params, page, { arms = about.arms } = {}) {
  const found = [];
  if (about.seeds.length > 1) {
    found.push(
      select(
        "Seed",
        about.seeds.map((seed) => [seed, seed]),
        params.seed ?? about.seeds[0],
        (seed) => go(page, { ...where().params, seed, doc: null }),
      ),
    );
  }
  if (arms.length > 1) {
    found.push(
      select(
        "Store",
        arms.map((one) => [one.arm, one.label]),
        params.arm ?? arms[0].arm,
        (arm) => go(page, { ...where().params, arm, doc: null }),
      ),
    );
  }
  return found;
}

/** A part of a page that waits for its data, then shows it or says why not. */
export function part(promise, show, waiting = "Working it out…") {
  const place = h("div", { class: "part" }, h("p", { class: "waiting", role: "status" }, waiting));
  promise
    .then(show)
    .then((found) => clear(place, found))
    .catch((error) => {
      if (error.name !== "AbortError") clear(place, sorry(error));
    });
  return place;
}

export const sorry = (error) => h("p", { class: "sorry", role: "alert" }, error.message || String(error));

export const section = (title, sentence, ...children) =>
  h("section", {}, h("h2", {}, title), sentence ? h("p", { class: "says" }, sentence) : null, children);

export const tabs = (label, options, chosen) =>
  h(
    "div",
    { class: "tabs", role: "group", "aria-label": label },
    options.map(([value, name, page, params]) =>
      view(page, params, { "aria-current": value === chosen ? "true" : null }, name),
    ),
  );

export const tag = (kind, text = kind) => h("span", { class: `tag ${kind}` }, text);
export { add };
