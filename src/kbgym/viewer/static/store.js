// Store: search as agents see it, one document with everything known of it, the index audit.

import { get } from "./api.js";
import { audit } from "./audit.js";
import { head, part, sorry, storePickers, tabs, tag, view } from "./chrome.js";
import { clear, count, fixed, h, later, percent, plural } from "./dom.js";
import { documentCard } from "./document.js";
import { note } from "./router.js";

export async function show(main, params) {
  const { run, seed, arm, at } = params;
  const about = await get("about", { run });
  const which = { run, seed, arm, at };
  const tab = params.tab ?? "search";
  const link = (value) => ({ run, seed, arm, at, tab: value === "search" ? null : value });
  clear(
    main,
    head(
      "Store",
      tab === "search"
        ? "Search the store exactly as an agent does: the same ranking, five documents a page. Open a document to see its links and who made them."
        : tab === "audit"
          ? "Every index that agents wrote: does it name a key, are its links right, is a member missing?"
          : tab === "corrections"
            ? "Corrected facts. A correction is shown in place of the documents it supersedes, which stay in the store."
            : "Links that are wrong, or that look wrong where the truth is not known. Open the index to see which question made them.",
      storePickers(about, params, "store"),
    ),
    at
      ? h(
          "p",
          { class: "hint" },
          `The store as it was after iteration ${at}. `,
          view("store", { run, seed, arm }, {}, "Show it as it is now"),
        )
      : null,
    tabs(
      "What to look at",
      [
        ["search", "Documents", "store", link("search")],
        ["audit", "Index audit", "store", link("audit")],
        ["suspects", "Suspect links", "store", link("suspects")],
        ["corrections", "Corrections", "store", link("corrections")],
      ],
      tab,
    ),
  );
  if (tab === "corrections") {
    main.append(part(get("corrections", which), (found) => corrected(found, which)));
    return undefined;
  }
  if (tab !== "search") {
    main.append(audit(which, tab, params));
    return undefined;
  }
  return searching(main, which, params);
}

function corrected(found, which) {
  if (!found.length) return h("p", { class: "hint" }, "Nobody corrected anything here.");
  return h(
    "ul",
    { class: "links" },
    found.map((one) =>
      h(
        "li",
        {},
        view("store", { ...which, doc: one.id }, { class: "plainlink" }, one.text),
        h(
          "ul",
          { class: "plain" },
          one.supersedes.map((old) =>
            h("li", {}, tag("gone", "superseded"), " ", view("store", { ...which, doc: old.id }, { class: "plainlink" }, old.text)),
          ),
        ),
      ),
    ),
  );
}

function searching(main, which, params) {
  const results = h("ol", { class: "hits" });
  const status = h("p", { class: "status", role: "status" });
  const detail = h("div", { class: "detail" });
  const box = h("input", {
    type: "search",
    id: "q",
    value: params.q ?? "",
    placeholder: "Words, as an agent would search, or an id",
    autocomplete: "off",
    spellcheck: "false",
    "aria-label": "Search the store",
    oninput: () => typed(),
  });
  box.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") {
      event.preventDefault();
      results.querySelector("a")?.focus();
    }
  });
  results.addEventListener("keydown", (event) => {
    const item = event.target.closest("li");
    const next = { ArrowDown: item?.nextElementSibling, ArrowUp: item?.previousElementSibling }[event.key];
    if (event.key === "ArrowUp" && item && !next) box.focus();
    if (next) {
      event.preventDefault();
      next.querySelector("a")?.focus();
    }
  });
  const grouping = h("input", { type: "checkbox", checked: params.grouped === "1", onchange: () => search() });
  let asking = new AbortController();

  async function search() {
    const query = box.value.trim();
    const grouped = grouping.checked;
    note({ q: query, grouped: grouped ? "1" : null });
    asking.abort();
    asking = new AbortController();
    if (!query) return beginning();
    try {
      const found = await get("search", { ...which, q: query }, { signal: asking.signal, fresh: true });
      status.textContent = found.hits.length
        ? `The first ${plural(found.hits.length, "document")} an agent would see, ${found.page} a page.`
        : "Nothing found.";
      clear(
        results,
        found.named ? hit(found.named, null, which) : null,
        grouped ? byPage(found.hits, which) : found.hits.map((one, number) => hit(one, number, which, found.page)),
      );
    } catch (error) {
      if (error.name !== "AbortError") clear(results, sorry(error));
    }
    return undefined;
  }
  async function beginning() {
    const found = await get("summary", which);
    const { ledger, coverage } = found;
    status.textContent = `${plural(ledger.documents, "document")}, ${count(ledger.authored)} of them written on top of the originals, ${plural(ledger.links, "link")}; ${percent(coverage.direct)} of the originals are under an index. To begin with, the largest indexes:`;
    clear(
      results,
      found.start.map((one) => hit(one, null, which)),
    );
  }
  const typed = later(search, 90);
  main.append(
    h(
      "div",
      { class: "split" },
      h(
        "div",
        { class: "finder" },
        h("div", { class: "searchbox" }, box, h("kbd", { title: "press / to search" }, "/")),
        h("label", { class: "field" }, grouping, h("span", {}, "Group by source page")),
        status,
        results,
      ),
      detail,
    ),
  );
  (params.q ? search() : beginning()).catch((error) => clear(results, sorry(error)));
  if (params.doc) {
    detail.append(part(get("document", { ...which, id: params.doc }), (found) => documentCard(found, which)));
  } else {
    detail.append(
      h(
        "p",
        { class: "hint" },
        "Choose a document to see its links in and out, where it comes from, and which question and step changed it.",
      ),
    );
  }
}

/** Hits under the page they stand on; pages in the order of their best hit. */
function byPage(hits, which) {
  const pages = new Map();
  for (const one of hits) pages.set(one.source, [...(pages.get(one.source) ?? []), one]);
  return [...pages].map(([page, found]) => [
    h("li", { class: "pagehead" }, page || "Written by agents"),
    found.map((one) => hit(one, null, which)),
  ]);
}

function hit(one, number, which, page) {
  const query = document.getElementById("q")?.value.trim();
  return h(
    "li",
    {
      class: number !== null && page && number && number % page === 0 ? "newpage" : null,
      "data-page": page && number !== null ? Math.floor(number / page) + 1 : null,
    },
    view(
      "store",
      { ...which, q: query, doc: one.id },
      { class: "hit" },
      h(
        "span",
        { class: "line" },
        one.kind === "source" ? null : tag(one.kind),
        one.superseded_by ? tag("gone", "superseded") : null,
        h("span", { class: "text" }, one.text),
      ),
      h(
        "span",
        { class: "meta" },
        h("span", { class: "id" }, one.id),
        one.links ? plural(one.links, "link") : null,
        one.score === undefined
          ? null
          : h("span", { title: "how near the query, as the agent's engine scores it" }, fixed(one.score, 3)),
      ),
    ),
  );
}
