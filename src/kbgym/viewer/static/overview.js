// Overview: what ran, what it gained, how it learned, what it kept, what it spent.

import { get } from "./api.js";
import { dotPlot } from "./chart.js";
import { learning } from "./learning.js";
import { head, part, section, select, view } from "./chrome.js";
import { clear, count, fixed, h, interval, sureClass } from "./dom.js";
import { note } from "./router.js";
import { reportTable } from "./report.js";
import { sheet } from "./table.js";

const GROUPS = {
  trained: "the very questions training asked",
  both: "new questions; training touched both things they ask about",
  one: "new questions; training touched one of the two",
  neither: "new questions about things training never touched",
  test_in: "questions training never saw",
};

export async function show(main, params) {
  const { run } = params;
  const about = await get("about", { run });
  const examined = about.examined;
  const gradient = examined ? get("gradient", { run }) : null;
  clear(
    main,
    head(
      "Overview",
      about.kind === "store"
        ? "A store of one-sentence documents and the links between them; nothing was trained or examined here."
        : "What training did to this store of documents, and what that gained on exam questions it may never have seen.",
    ),
    about.agent
      ? h(
          "p",
          { class: about.reference ? "agent" : "agent model" },
          h("strong", {}, "Who played: "),
          about.agent,
          ".",
          about.reference ? " No number on this page is a language model's, except the rows marked “paper”." : "",
        )
      : null,
    gradient ? part(gradient, (found) => [
          h("p", { class: "headline" }, found.headline),
          h("p", { class: "hint" }, found.words),
        ]) : null,
    h(
      "dl",
      { class: "facts" },
      about.facts.map((one) =>
        h("div", {}, h("dt", {}, one.label), h("dd", {}, h("b", {}, one.value), h("span", {}, one.note))),
      ),
    ),
    examined ? [results(run, params, gradient), kinds(run, params.seed, about), gradientFigures(gradient)] : nothingYet(about),
    about.trained.length ? learning(run, params.seed) : null,
    examined ? [retention(run, about), spend(run, about), further(run, about)] : null,
  );
}

const nothingYet = (about) =>
  about.kind === "store"
    ? h(
        "p",
        { class: "hint" },
        "Look at the ",
        view("store", { run: about.name }, {}, "store"),
        " or its ",
        view("map", { run: about.name }, {}, "map"),
        ".",
      )
    : h(
        "p",
        { class: "hint" },
        `No exam compares the trained store with the flat one yet; kbgym prove makes them: kbgym prove ${about.folder}/world --out ${about.folder}. `,
        view("live", { run: about.name }, {}, "Follow the run"),
        ".",
      );

/** Flat against one arm, group by group. */
function results(run, params, gradient) {
  return section(
    "Flat against trained",
    "The same questions on the flat store and on the trained one. ρ (rho) is the trained store's actions over the other's: below 1 it needs fewer. An interval that leaves out 1 (or 0) is in bold.",
    part(gradient, (found) => {
      const place = h("div");
      const arms = found.arms.map((one) => [one.arm, one.label]);
      const start =
        found.arms.find((one) => one.arm === params.vs)?.arm ??
        found.arms.find((one) => one.trained)?.arm ??
        arms[0]?.[0];
      if (!start) return h("p", {}, "No arm but the flat store was examined.");
      const draw = (arm) =>
        clear(
          place,
          comparison(
            found,
            found.arms.find((one) => one.arm === arm),
          ),
        );
      draw(start);
      return [
        arms.length > 1
          ? h(
              "div",
              { class: "controls" },
              select("Compare flat with", arms, start, (arm) => {
                note({ vs: arm });
                draw(arm);
              }),
            )
          : null,
        place,
      ];
    }),
  );
}

function comparison(found, arm) {
  const groups = found.groups.filter((one) => one.group !== "pooled"); // trained-on and unseen questions stay apart
  const lines = groups.map(({ group, label }) => {
    const one = arm.groups[group];
    const [before, after] = one.actions;
    const most = Math.max(...groups.flatMap((each) => arm.groups[each.group].actions));
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, label, h("small", {}, GROUPS[group] ?? "")),
      h("td", { class: "number" }, count(one.n)),
      h("td", { class: "bars" }, bar(before, most, "flat"), bar(after, most, "trained")),
      h(
        "td",
        { class: sureClass(one.rho, 1), title: "actions on the trained store over actions on the flat one" },
        interval(one.rho),
      ),
      h("td", { class: "number" }, `${fixed(one.f1[0])} → ${fixed(one.f1[1])}`),
      h("td", { class: sureClass(one.difference, 0) }, interval(one.difference)),
    );
  });
  const raw = groups.map(({ group, label }) => {
    const { n, actions, rho, f1, difference } = arm.groups[group];
    return [
      label,
      n,
      ...actions,
      rho.value,
      rho.low,
      rho.high,
      ...f1,
      difference.value,
      difference.low,
      difference.high,
    ];
  });
  const heads = [
    "questions",
    "n",
    "actions flat",
    "actions",
    "rho",
    "rho low",
    "rho high",
    "F1 flat",
    "F1",
    "F1 difference",
    "difference low",
    "difference high",
  ];
  return sheet(
    `flat-and-${arm.arm}`,
    heads,
    raw,
    h(
      "table",
      { class: "report compare" },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          [
            "Questions",
            "n",
            "Actions a question: flat, trained",
            "ρ [95%]",
            "F1 flat → trained",
            "F1 difference [95%]",
          ].map((name, at) => h("th", { scope: "col", class: at && at !== 2 ? "number" : null }, name)),
        ),
      ),
      h("tbody", {}, lines),
    ),
  );
}

function bar(value, most, kind) {
  const length = h("span", { class: `bar-fill ${kind}` });
  length.style.width = `${((100 * value) / most).toFixed(1)}%`;
  return h(
    "span",
    { class: "bar-line" },
    h("span", { class: "bar-room" }, length),
    h("span", { class: "number" }, fixed(value, 1)),
  );
}

/** Flat against trained by kind of question, on the questions training never saw. */
function kinds(run, seed, about) {
  return part(get("questions", { run, seed }), (found) => {
    const arm = about.trained[0];
    const unseen = found.rows.filter((row) => row.set !== "trained" && row.by.flat && row.by[arm]);
    const named = [...new Set(unseen.map((row) => row.class))].sort((x, y) => x.localeCompare(y, undefined, { numeric: true }));
    if (named.length < 2) return null;
    const rows = named.map((name) => {
      const some = unseen.filter((row) => row.class === name);
      const mean = (which, at) => some.reduce((sum, row) => sum + (row.by[which][at] ?? 0), 0) / some.length;
      return [name, some.length, mean("flat", 1), mean(arm, 1), mean("flat", 0), mean(arm, 0)];
    });
    const heads = ["Kind", "n", "Actions before", "after", "F1 before", "after"];
    const cells = (row) => [row[0], count(row[1]), fixed(row[2], 1), fixed(row[3], 1), fixed(row[4], 2), fixed(row[5], 2)];
    return section(
      "By kind of question",
      "Questions training never saw, before and after training. Small groups have wide intervals: read them as a hint.",
      sheet(
        "kinds",
        heads,
        rows,
        h(
          "table",
          { class: "report" },
          h("thead", {}, h("tr", {}, heads.map((name, at) => h("th", { scope: "col", class: at ? "number" : null }, name)))),
          h("tbody", {}, rows.map((row) => h("tr", {}, cells(row).map((text, at) => h("td", { class: at ? "number" : null }, text))))),
        ),
      ),
    );
  });
}

function gradientFigures(gradient) {
  return section(
    "Cost and accuracy, group by group",
    "Left of 1 is cheaper than the flat store; right of 0 is more accurate. ρ is the trained store's actions over the flat one's.",
    part(gradient, (found) => {
      const groups = found.groups.filter((one) => one.group !== "pooled");
      const rows = (measure) =>
        found.arms.map((arm) => ({
          label: arm.label,
          points: groups.map(({ group, label }) => ({ group, label, ...arm.groups[group][measure] })),
        }));
      return h(
        "div",
        { class: "pair" },
        dotPlot({
          name: "gradient-rho",
          title: "Cost: ρ with its 95% interval",
          rows: rows("rho"),
          at: 1,
          groups,
          axis: "ρ, actions over the flat store's",
        }),
        dotPlot({
          name: "gradient-f1",
          title: "Accuracy: F1 minus flat's",
          rows: rows("difference"),
          at: 0,
          groups,
          axis: "difference of F1",
        }),
      );
    }),
  );
}

const shown = (run, name) => part(get("table", { run, name }), (table) => reportTable(run, name, table));

const retention = (run, about) =>
  section(
    "Retention by class",
    "Did the store keep what it learned? The same training questions, the first and the second time, by kind of question.",
    about.trained.map((arm) => shown(run, `retention:${arm}`)),
  );

const spend = (run, about) =>
  section(
    "Spend",
    "What training cost, and after how many questions that is paid back.",
    shown(run, "spend"),
    about.trained.map((arm) => shown(run, `edits:${arm}`)),
  );

const further = (run, about) =>
  h(
    "section",
    {},
    h("h2", {}, "Everything else"),
    [
      ["gradient", "Every number, group by group"],
      ["arms", "Every arm: size, cost, result"],
      ...(about.seeds.length > 1 ? [["seeds", "Seed by seed"]] : []),
      ["audit", "What the store holds"],
      ["coverage", "Coverage in four readings"],
      ...about.trained.map((arm) => [`quality:${arm}`, `Index quality, ${arm}`]),
    ].map(([name, title]) => {
      const place = h("div");
      return h(
        "details",
        {
          ontoggle: (event) => {
            if (event.target.open && !place.firstChild) place.append(shown(run, name));
          },
        },
        h("summary", {}, title),
        place,
      );
    }),
  );
