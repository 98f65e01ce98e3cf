// Names of runs that are shown together. Pure.
import type { Comparison } from "../api/types";
import { cell } from "./format";

type Run = Comparison["runs"][number];

const kLongestValue = 40; // of an option, in a legend

/** The members of each group that have something in common. */
function groups<T>(all: readonly T[], of: (one: T) => string): T[][] {
  const found = new Map<string, T[]>();
  for (const one of all) found.set(of(one), [...(found.get(of(one)) ?? []), one]);
  return [...found.values()];
}

/** What the option says of each run, if it is the only one in which they differ. */
function onlyOption(runs: readonly Run[], differ: readonly string[]): string[] | null {
  const value = (run: Run, key: string): string => cell("option", run.options[key]);
  const keys = differ.filter((key) => groups(runs, (run) => value(run, key)).length > 1);
  const marks = keys.length === 1 ? runs.map((run) => `${keys[0]!.split(".").pop()}=${value(run, keys[0]!)}`) : null;
  return marks?.every((mark) => mark.length <= kLongestValue) ? marks : null;
}

/** A name for each run: its own. Runs of one name get the strategy, if theirs differ, and the only option that differs, as the pictures of
 *  `troupe compare` have them; those that are still equal, and those that nothing is known of yet, are called by their directory. */
export function namesOf(runs: readonly string[], compared: Comparison | null): Map<string, string> {
  const marks = new Map<Run, string[]>((compared?.runs ?? []).map((run) => [run, []]));
  const text = (run: Run): string => (marks.get(run)!.length ? `${run.name} (${marks.get(run)!.join(", ")})` : run.name);
  const equal = (): Run[][] => groups([...marks.keys()], text).filter((group) => group.length > 1);
  for (const group of equal())
    if (groups(group, (run) => cell("option", run.options["strategy.name"])).length > 1)
      for (const run of group) marks.get(run)!.push(cell("option", run.options["strategy.name"]));
  for (const group of equal())
    onlyOption(group, compared?.differ ?? [])?.forEach((mark, i) => marks.get(group[i]!)!.push(mark));
  const names = new Map(runs.map((run) => [run, run]));
  for (const [only, ...others] of groups([...marks.keys()], text))
    if (only && others.length === 0) names.set(only.run, text(only));
  return names;
}
