import assert from "node:assert/strict";
import { test } from "node:test";
import { asked, link, parsedRoute } from "../../src/lib/route";

test("ARunsNameWithSlashAndBlankSurvivesTheAddress", () => {
  for (const run of ["alpha-tau/2026 x", "100%", "a?b#c", "ä/é"]) assert.deepEqual(parsedRoute(link(["runs", run])).path, ["runs", run]);
  assert.deepEqual(parsedRoute("#/runs/%zz").path, ["runs", "%zz"]);
});

test("EmptyEntriesAreLeftOutOfAQuery", () => {
  assert.equal(asked({ filter: "", sort: "loss", descending: false, run: ["a", "b"], limit: 0 }), "?sort=loss&run=a&run=b&limit=0");
  assert.deepEqual(parsedRoute("#/compare?run=a&run=b").query.getAll("run"), ["a", "b"]);
});
