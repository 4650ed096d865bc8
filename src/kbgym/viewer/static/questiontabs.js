// What the lists of exam and training questions share.

import { tabs, tag } from "./chrome.js";
import { words } from "./dom.js";

export const choose = (params) =>
  tabs(
    "Which questions",
    [
      ["exam", "Exam questions", "questions", { run: params.run, seed: params.seed }],
      ["training", "Training questions", "questions", { run: params.run, seed: params.seed, tab: "training" }],
    ],
    params.tab ?? "exam",
  );

export const outcomeTag = (outcome, f1) =>
  outcome === "answered"
    ? tag(f1 === 1 ? "good" : "bad", f1 === 1 ? "right" : f1 > 0 ? "partly" : "wrong")
    : outcome
      ? tag("bad", words(outcome))
      : "–";
