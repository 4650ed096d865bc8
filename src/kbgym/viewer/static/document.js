// One document: what it says, what it links to and what links to it, where it came from, and who changed it.

import { documentLink, tag, view } from "./chrome.js";
import { count, h, percent, plural } from "./dom.js";

const KINDS = {
  source: "an original document",
  edited: "an original that was edited",
  index: "an index",
  stub: "a stub: written, but it links to nothing",
  gone: "no longer in the store",
};

export function documentCard(found, which) {
  const { run, seed, arm } = which;
  return h(
    "article",
    { class: "card document" },
    h("header", {}, h("span", { class: "id" }, found.id), tag(found.kind, KINDS[found.kind] ?? found.kind)),
    h("p", { class: "sentence" }, found.text),
    h(
      "p",
      { class: "actions" },
      found.alive ? view("map", { run, seed, arm, focus: found.id }, {}, "Show on the map") : null,
    ),
    found.audit ? verdict(found.audit) : null,
    provenance(found),
    links("Links to", found.out, found.out_total, which, "It links to nothing."),
    links("Linked from", found.in, found.in_total, which, "Nothing links to it."),
    history(found, which),
  );
}

function verdict(one) {
  const parts = [];
  if (one.shape === "stub") parts.push("An index without links: searching finds it, but it leads nowhere.");
  if (one.shape === "materialised")
    parts.push("It states an answer itself instead of pointing to the documents that do.");
  if (one.shape === "other") parts.push("It names no single key, so its links are not scored.");
  if (one.precision !== null) {
    parts.push(
      `Index of ${one.key}: ${percent(one.precision, 0)} of its links are right, and it leads to ${percent(one.recall, 0)} of ${plural(one.members, "member")}.`,
    );
    if (one.missing)
      parts.push(`Missing: ${one.missing_names.join(", ")}${one.missing > one.missing_names.length ? ", …" : ""}.`);
  }
  return parts.length
    ? h(
        "p",
        { class: one.shape === "genuine" && !one.wrong && !one.missing ? "verdict good" : "verdict" },
        parts.join(" "),
      )
    : null;
}

function provenance(found) {
  const lines = found.origins.map((origin) =>
    h(
      "li",
      {},
      h("span", { class: "id" }, origin.id),
      " ",
      origin.text && origin.text !== found.text ? `originally “${origin.text}” ` : "",
      origin.source
        ? h(
            "span",
            { class: "source" },
            `${origin.source.file}, characters ${count(origin.source.start)} to ${count(origin.source.end)}`,
          )
        : null,
    ),
  );
  const said =
    found.origins.length === 1 && !found.origins[0].source && found.flag === "untouched"
      ? "An original of the world, untouched."
      : found.origins.length
        ? `It stands for ${plural(found.origins.length, "original fact")}${found.flag === "edited" ? ", and its text was edited" : ""}.`
        : "It stands for no original fact: an agent wrote it.";
  return h(
    "section",
    {},
    h("h3", {}, "Where it comes from"),
    h("p", {}, said, found.opened ? ` Opened in ${plural(found.opened, "training pass", "training passes")}.` : ""),
    found.origins.length > 1 || found.origins.some((one) => one.source) || found.flag === "edited"
      ? h("ul", { class: "plain" }, lines)
      : null,
  );
}

function links(title, list, total, which, none) {
  return h(
    "section",
    {},
    h("h3", {}, title, " ", h("small", {}, count(total))),
    list.length
      ? h(
          "ul",
          { class: "links" },
          list.map((one, at) => [
            one.by && !same(one.by, list[at - 1]?.by)
              ? h("li", { class: "made" }, author(one.by, which, "Linked in "))
              : null,
            h(
              "li",
              { class: one.suspect ? "suspect" : null },
              h(
                "span",
                { class: "line" },
                documentLink(one.id, which),
                one.kind === "source" ? null : tag(one.kind),
                h("span", { class: "text" }, one.text),
                one.suspect ? tag("bad", one.suspect === "wrong" ? "wrong link" : "suspect link") : null,
              ),
            ),
          ]),
        )
      : h("p", { class: "none" }, none),
    list.length < total ? h("p", { class: "none" }, `The first ${count(list.length)} are shown.`) : null,
  );
}

const same = (one, other) =>
  other && one.iteration === other.iteration && one.phase === other.phase && one.step === other.step;

/** Which question and step did it, as a link to that very pass. */
function author(by, { run, seed, arm }, before = "") {
  const pass = by.phase === "idle" || by.phase === "serve" ? by.phase : `${by.phase} pass`;
  return h(
    "span",
    { class: "by" },
    before,
    view(
      "questions",
      { run, seed, arm, iteration: by.iteration, step: by.step },
      {},
      `iteration ${by.iteration}, step ${by.step}`,
    ),
    ` of the ${pass}`,
    by.text ? `: “${by.text}”` : "",
    by.agent && by.agent !== "reference" ? ` (${by.agent})` : "",
  );
}

function history(found, which) {
  if (found.initial === null) return null;
  const said = {
    written: "Written",
    edited: "Edited",
    merged: "Merged",
    linked: "Links changed",
    deleted: "Deleted",
    folded: "Folded into another",
  };
  const lines = found.history.map((change) =>
    h(
      "li",
      {},
      h("strong", {}, said[change.kind] ?? change.kind),
      change.other ? [" with ", documentLink(change.other, which)] : null,
      " in ",
      author(change.by, which),
      change.text ? h("span", { class: "quote" }, `“${change.text}”`) : null,
      change.added_total
        ? h(
            "details",
            {},
            h("summary", {}, `${plural(change.added_total, "link")} added`),
            h(
              "ul",
              { class: "plain" },
              change.added.map((one) => h("li", {}, documentLink(one.id, which), " ", one.text)),
            ),
          )
        : null,
      change.removed_total
        ? h("span", { class: "quote" }, `${plural(change.removed_total, "link")} removed: ${change.removed.join(", ")}`)
        : null,
    ),
  );
  if (found.initial) lines.unshift(h("li", {}, "There from the beginning."));
  return h("section", {}, h("h3", {}, "History"), h("ol", { class: "history" }, lines));
}
