// Compare: two stores of one run or of two: their numbers, their documents and links, their questions.

import { get } from "./api.js";
import { comparedExams } from "./compareexams.js";
import { head, part, section, select, tabs, view } from "./chrome.js";
import { clear, count, fixed, h, percent, signed } from "./dom.js";
import { go, note } from "./router.js";
import { dataTable, sheet } from "./table.js";

export async function show(main, params, places) {
  const { run } = params;
  const run2 = params.run2 ?? run;
  const [one, two] = await Promise.all([get("about", { run }), get("about", { run: run2 })]);
  const left = params.left ?? (run2 === run && one.trained.length ? "flat" : one.arms[0].arm);
  const right = params.right ?? two.arms[0].arm;
  const asked = { run, seed: params.seed, left, run2, seed2: params.seed2, right };
  const change = (changes) => go("compare", { ...asked, ...changes, list: params.list });
  const side = (name, about, which, keys) =>
    h(
      "fieldset",
      {},
      h("legend", {}, name),
      places.length > 1
        ? select(
            "Run",
            places.map((place) => [place.name, place.name]),
            about.name,
            (value) => change({ [keys.run]: value, [keys.arm]: null, [keys.seed]: null }),
          )
        : null,
      about.seeds.length > 1
        ? select(
            "Seed",
            about.seeds.map((seed) => [seed, seed]),
            asked[keys.seed] ?? about.seeds[0],
            (value) => change({ [keys.seed]: value }),
          )
        : null,
      select(
        "Store",
        about.arms.map((arm) => [arm.arm, arm.label]),
        which,
        (value) => change({ [keys.arm]: value }),
      ),
    );
  clear(
    main,
    head(
      "Compare",
      "Two stores side by side: what differs in their numbers, in their documents and links, and question by question. The change is always from left to right.",
    ),
    h(
      "div",
      { class: "controls versus" },
      side("Left", one, left, { run: "run", seed: "seed", arm: "left" }),
      h("span", { class: "arrow", "aria-hidden": "true" }, "→"),
      side("Right", two, right, { run: "run2", seed: "seed2", arm: "right" }),
    ),
    section(
      "On the exam",
      "Questions both stores were asked. ρ is the right store's actions over the left one's: below 1 it needs fewer. Bold: the interval leaves out “no difference”.",
      part(get("compare-questions", asked), comparedExams),
    ),
    section(
      "In the store",
      null,
      part(get("compare", asked), (found) => stores(found, asked, params)),
    ),
    section(
      "Question by question",
      null,
      part(get("compare-questions", asked), (found) => rows(found, asked, params)),
    ),
  );
}

function stores(found, asked, params) {
  const { counts } = found;
  const show = (name, value) => (name === "coverage" ? percent(value) : count(value));
  const numbers = sheet(
    "compare-stores",
    ["measure", found.left.label, found.right.label],
    found.numbers,
    h(
      "table",
      { class: "report" },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          ["", found.left.label, found.right.label, "Change"].map((name, at) =>
            h("th", { scope: "col", class: at ? "number" : null }, name),
          ),
        ),
      ),
      h(
        "tbody",
        {},
        found.numbers.map(([name, before, after]) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, name),
            h("td", { class: "number" }, show(name, before)),
            h("td", { class: "number" }, show(name, after)),
            h(
              "td",
              { class: "number" },
              name === "coverage" ? `${signed(100 * (after - before), 1)} points` : signed(after - before, 0),
            ),
          ),
        ),
      ),
    ),
  );
  const lists = [
    ["added", `Added ${count(counts.added)}`],
    ["removed", `Removed ${count(counts.removed)}`],
    ["edited", `Edited ${count(counts.edited)}`],
    ["relinked", `Relinked ${count(counts.relinked)}`],
  ];
  const chosen = params.list ?? lists.find(([name]) => counts[name])?.[0] ?? "added";
  return [
    h(
      "p",
      { class: "says" },
      `${count(counts.links_added)} links were added and ${count(counts.links_removed)} removed.`,
    ),
    numbers,
    tabs(
      "Which documents",
      lists.map(([name, label]) => [name, label, "compare", { ...asked, list: name }]),
      chosen,
    ),
    counts[chosen] > found.most
      ? h("p", { class: "hint" }, `The first ${count(found.most)} of ${count(counts[chosen])} are listed.`)
      : null,
    list(chosen, found[chosen], asked),
  ];
}

function list(kind, rows, asked) {
  const gone = kind === "removed";
  const context = gone
    ? { run: asked.run, seed: asked.seed, arm: asked.left }
    : { run: asked.run2, seed: asked.seed2, arm: asked.right };
  const open = (row) => go("store", { ...context, doc: row.id });
  const id = {
    key: "id",
    label: "Document",
    show: (row) => view("store", { ...context, doc: row.id }, { class: "id" }, row.id),
  };
  const columns = {
    edited: [id, { key: "before", label: "Said", wide: true }, { key: "after", label: "Says", wide: true }],
    relinked: [
      id,
      { key: "text", label: "Says", wide: true },
      { key: "added", label: "Links added", number: true },
      { key: "removed", label: "Links removed", number: true },
      { key: "links", label: "Links now", number: true },
    ],
  }[kind] ?? [
    id,
    { key: "text", label: "Says", wide: true },
    { key: "kind", label: "Is" },
    { key: "links", label: "Links", number: true },
  ];
  return dataTable({
    name: `documents-${kind}`,
    label: `Documents ${kind}`,
    rows,
    columns,
    open,
    empty: `No document was ${kind}.`,
  });
}

function rows(found, asked, params) {
  const change = (row, field) =>
    row[field][0] === null || row[field][1] === null ? null : row[field][1] - row[field][0];
  const same = asked.run === asked.run2 && (asked.seed ?? "") === (asked.seed2 ?? asked.seed ?? "");
  return dataTable({
    name: "compare-questions",
    label: "Question by question",
    rows: found.rows,
    sort: params.sort ?? "actions",
    onSort: (sort) => note({ sort }),
    empty: "No question was asked on both stores.",
    open: same
      ? (row) =>
          go("questions", {
            run: asked.run,
            seed: asked.seed,
            set: row.set,
            q: row.id,
            arms: `${asked.left},${asked.right}`,
          })
      : null,
    columns: [
      { key: "text", label: "Question", wide: true },
      { key: "set", label: "Group" },
      { key: "class", label: "Class" },
      {
        key: "f1a",
        label: "F1",
        csv: "F1 left",
        number: true,
        value: (row) => row.f1[0],
        show: (row) => fixed(row.f1[0], 2),
      },
      {
        key: "f1b",
        label: "→ F1",
        csv: "F1 right",
        number: true,
        value: (row) => row.f1[1],
        show: (row) => fixed(row.f1[1], 2),
      },
      {
        key: "f1",
        label: "Change",
        csv: "F1 change",
        number: true,
        value: (row) => change(row, "f1"),
        show: (row) => signed(change(row, "f1"), 2),
      },
      { key: "a", label: "Actions", csv: "actions left", number: true, value: (row) => row.actions[0] },
      { key: "b", label: "→ actions", csv: "actions right", number: true, value: (row) => row.actions[1] },
      {
        key: "actions",
        label: "Change",
        csv: "actions change",
        number: true,
        value: (row) => row.actions[1] - row.actions[0],
        show: (row) => signed(row.actions[1] - row.actions[0], 0),
      },
    ],
  });
}
