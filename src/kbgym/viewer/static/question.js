// One question to read: an exam question on two stores side by side, or a training question forward and backward.

import { get } from "./api.js";
import { section, select, view } from "./chrome.js";
import { conversation } from "./conversation.js";
import { clear, count, fixed, h, plural } from "./dom.js";
import { go, where } from "./router.js";

/** The same question on two stores. */
export async function question(main, params) {
  const { run, seed, set, q } = params;
  const [about, list] = await Promise.all([get("about", { run }), get("questions", { run, seed })]);
  const row = list.rows.find((one) => one.id === q && one.set === set);
  const asked = (params.arms ?? "").split(",").filter(Boolean);
  const arms = list.arms.filter((one) => row?.by[one.arm]);
  const chosen = [asked[0] ?? arms[0]?.arm, asked[1] ?? about.trained[0] ?? arms.at(-1)?.arm];
  const pick = (at) => (arm) =>
    go("questions", { run, seed, set, q, arms: chosen.map((one, place) => (place === at ? arm : one)).join(",") });
  const found = await get("question", { run, seed, set, id: q, arms: [...new Set(chosen)].join(",") });
  const [left, right] = found.sides;
  const verdict = right ? difference(left, right) : "";
  clear(
    main,
    h(
      "p",
      { class: "crumb" },
      view("questions", { run, seed, set, a: chosen[0], b: chosen[1] }, {}, "← All questions"),
    ),
    h(
      "div",
      { class: "head" },
      h(
        "div",
        {},
        h("h1", { class: "asked" }, found.text),
        h(
          "p",
          { class: "lede" },
          "Expected: ",
          found.golds.map((gold) => h("b", { class: "gold" }, gold)),
          ` · ${found.class} · ${list.sets.find((one) => one.set === set)?.label ?? set}`,
          found.taught.map((one) => [
            " · ",
            view(
              "questions",
              { run, seed, arm: one.arm, iteration: one.iteration },
              {},
              `asked in training, iteration ${one.iteration}`,
            ),
          ]),
        ),
      ),
      h(
        "div",
        { class: "controls" },
        select(
          "Left",
          arms.map((one) => [one.arm, one.label]),
          chosen[0],
          pick(0),
        ),
        select(
          "Right",
          arms.map((one) => [one.arm, one.label]),
          chosen[1],
          pick(1),
        ),
      ),
    ),
    verdict ? h("p", { class: "headline small" }, verdict) : null,
    h(
      "p",
      { class: "says" },
      h("span", { class: "mark evidence" }),
      "a fact the answer depends on ",
      right ? [h("span", { class: "mark fresh" }), "a step only this side took"] : null,
    ),
    h(
      "div",
      { class: "sides" },
      found.sides.map((side) =>
        conversation(side, { run, seed, arm: side.arm }, { title: side.label, compared: Boolean(right) }),
      ),
    ),
    found.support.length
      ? section(
          "What the answer depends on",
          null,
          h(
            "ul",
            { class: "links" },
            found.support.map((one) =>
              h(
                "li",
                {},
                view("store", { run, seed, arm: chosen[0], doc: one.id }, { class: "plainlink", title: one.id }, one.text),
              ),
            ),
          ),
        )
      : null,
  );
}

function difference(left, right) {
  const gap = left.actions - right.actions;
  const score =
    right.f1 === left.f1 ? "the answer scores the same" : `F1 goes from ${fixed(left.f1, 2)} to ${fixed(right.f1, 2)}`;
  if (!gap) return `Both take ${plural(left.actions, "action")}; ${score}.`;
  return `${right.label} takes ${plural(right.actions, "action")}, ${count(Math.abs(gap))} ${gap > 0 ? "fewer" : "more"} than ${left.label}; ${score}.`;
}

/** One iteration of training. */
export async function lesson(main, params) {
  const { run, seed, arm, iteration } = params;
  const found = await get("lesson", { run, seed, arm, iteration });
  const near = (step) => ({ ...where().params, iteration: Number(iteration) + step, step: null });
  const title = {
    forward: "Forward: the reader answers",
    backward: "Backward: the expected answer is known, the curator edits",
    idle: "Between questions",
    serve: "While serving",
  };
  const shown = found.sides.map((side) => ({
    ...side,
    ...(side.phase === "forward" ? { f1: found.f1, answer: found.answer } : {}),
  }));
  clear(
    main,
    h(
      "p",
      { class: "crumb" },
      view("questions", { run, seed, arm, tab: "training" }, {}, "← All training questions"),
      Number(iteration) > 1 ? view("questions", near(-1), {}, "Previous") : null,
      view("questions", near(1), {}, "Next"),
    ),
    h(
      "div",
      { class: "head" },
      h(
        "div",
        {},
        h("h1", { class: "asked" }, found.text || "A pass without a question"),
        h(
          "p",
          { class: "lede" },
          `Iteration ${iteration} of ${found.label}`,
          found.epoch ? `, epoch ${found.epoch}` : "",
          found.class ? ` · ${found.class}` : "",
          found.golds.length ? [" · Expected: ", found.golds.map((gold) => h("b", { class: "gold" }, gold))] : null,
        ),
      ),
    ),
    h(
      "p",
      { class: "says" },
      h("span", { class: "mark evidence" }),
      "a fact the answer depends on; ",
      "each edit says what became of it",
    ),
    h(
      "div",
      { class: "sides" },
      shown.map((side) =>
        conversation(
          side,
          { run, seed, arm: found.arm },
          { title: title[side.phase] ?? side.phase, step: side.phase !== "forward" ? params.step : null },
        ),
      ),
    ),
  );
  document.getElementById("chosen")?.scrollIntoView({ block: "center" });
}
