// Addresses: a page's name is the path, everything it shows is in the query, so every view can be shared and reloaded.

export const PAGES = [
  ["", "Overview"],
  ["store", "Store"],
  ["map", "Map"],
  ["questions", "Questions"],
  ["compare", "Compare"],
  ["live", "Live"],
];

let changed = () => {};
export const onChange = (work) => {
  changed = work;
};

export function where() {
  const page = location.pathname.split("/").pop();
  return { page, params: Object.fromEntries(new URLSearchParams(location.search)) };
}

/** The address of a view, relative to wherever the viewer is served. */
export function to(page, params = {}) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(params)) {
    if (value !== null && value !== undefined && value !== "") query.set(key, value);
  }
  const text = query.toString();
  return (page || "./") + (text ? `?${text}` : "");
}

export function go(page, params = {}) {
  history.pushState(null, "", to(page, params));
  changed();
}

/** Note a change of the present view in its address without showing it anew. */
export function note(changes) {
  const { page, params } = where();
  history.replaceState(null, "", to(page, { ...params, ...changes }));
}

/** What stays the same from page to page. */
export function common() {
  const { run, seed, arm } = where().params;
  return { run, seed, arm };
}

addEventListener("popstate", () => changed());

// A plain click on one of our own links changes the view without loading the page again.
addEventListener("click", (event) => {
  const link = event.target.closest?.("a[data-view]");
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  history.pushState(null, "", link.getAttribute("href"));
  changed();
});
