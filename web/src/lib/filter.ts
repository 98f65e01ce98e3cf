// The language of filters (docs/runs.md): conditions KEY OPERATOR VALUE, divided by blanks or `and`.

export const kOperators = ["!=", "<=", ">=", "=", "<", ">", "~"] as const;
export type Operator = (typeof kOperators)[number];

export interface Condition {
  key: string;
  operator: Operator;
  value: string;
}

/** A value with blanks, or none, stands in double quotes. */
export const quoted = (value: string): string => (/^[^\s"]+$/.test(value) ? value : `"${value.replace(/"/g, "")}"`);

export const written = (c: Condition): string => `${c.key}${c.operator}${quoted(c.value)}`;

export const joined = (conditions: readonly Condition[]): string => conditions.map(written).join(" ");

/** The conditions of a filter, or the place where it stops to make sense. */
export function parsed(filter: string): { conditions: Condition[] } | { error: string; at: number } {
  const conditions: Condition[] = [];
  const pattern = /\s*(?:and(?=\s)\s*)?([A-Za-z_][\w.-]*)\s*(!=|<=|>=|=|<|>|~)\s*(?:"([^"]*)"|([^\s"]+))(?=\s|$)/y;
  const end = filter.trimEnd().length;
  while (pattern.lastIndex < end) {
    const at = pattern.lastIndex;
    const found = pattern.exec(filter);
    if (!found) {
      const start = at + (/^\s*(?:and\s+)?/.exec(filter.slice(at))?.[0].length ?? 0);
      return { error: `column ${start + 1}: expected KEY OPERATOR VALUE, as in strategy=easgd`, at: start };
    }
    conditions.push({ key: found[1]!, operator: found[2] as Operator, value: found[3] ?? found[4] ?? "" });
  }
  return { conditions };
}

/** Adds the condition, or takes it away when the filter has it. A condition "=" replaces another one of its key. */
export function toggled(filter: string, condition: Condition): string {
  const now = parsed(filter);
  if (!("conditions" in now)) return written(condition);
  const same = (c: Condition): boolean => written(c) === written(condition);
  if (now.conditions.some(same)) return joined(now.conditions.filter((c) => !same(c)));
  const others = now.conditions.filter(
    (c) => !(condition.operator === "=" && condition.key !== "tag" && c.operator === "=" && c.key === condition.key));
  return joined([...others, condition]);
}

export function holds(filter: string, condition: Condition): boolean {
  const now = parsed(filter);
  return "conditions" in now && now.conditions.some((c) => written(c) === written(condition));
}
