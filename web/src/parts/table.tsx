// A table whose columns sort, and which draws only the rows that are seen when there are many.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

export interface Column<Row> {
  key: string;
  title: string;
  help?: string;
  numeric?: boolean;
  sortable?: boolean;
  wide?: boolean; // takes what is left
  show: (row: Row) => ComponentChildren;
}

interface Props<Row> {
  label: string;
  columns: Column<Row>[];
  rows: Row[];
  id: (row: Row) => string | number;
  sort?: { key: string; descending: boolean };
  onSort?: (key: string, descending: boolean) => void;
  chosen?: (row: Row) => boolean;
  foot?: ComponentChildren;
}

const kRow = 33; // px, as the style sheet has it
const kManyRows = 120;
const kSpare = 12;

export function Table<Row>({ label, columns, rows, id, sort, onSort, chosen, foot }: Props<Row>): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const [seen, setSeen] = useState({ from: 0, to: 60 });
  const many = rows.length > kManyRows;
  const look = (): void => {
    const element = box.current;
    if (!element) return;
    const from = Math.max(0, Math.floor(element.scrollTop / kRow) - kSpare);
    const to = Math.ceil((element.scrollTop + element.clientHeight) / kRow) + kSpare;
    setSeen((old) => (old.from === from && old.to === to ? old : { from, to }));
  };
  useEffect(look, [rows.length]);
  const from = many ? Math.min(seen.from, Math.max(0, rows.length - 1)) : 0;
  const to = many ? Math.min(seen.to, rows.length) : rows.length;
  return (
    <div class={many ? "table-box many" : "table-box"} ref={box} onScroll={many ? look : undefined} tabIndex={0} role="region" aria-label={label}>
      <table class="table" aria-rowcount={many ? rows.length + 1 : undefined}>
        <thead>
          <tr>
            {columns.map((c) => {
              const sorted = sort?.key === c.key;
              const direction = sorted ? (sort.descending ? "descending" : "ascending") : undefined;
              const mark = <span class="sort-mark" aria-hidden="true">{sorted ? (sort.descending ? "↓" : "↑") : ""}</span>;
              const heading = c.title || <span class="hidden">{c.key}</span>;
              return (
                <th key={c.key} scope="col" class={c.numeric ? "number" : c.wide ? "stretch" : undefined} aria-sort={direction} title={c.help}>
                  {c.sortable && onSort
                    ? <button type="button" onClick={() => onSort(c.key, sorted ? !sort.descending : !!c.numeric)}>
                        {c.numeric && mark}{heading}{!c.numeric && mark}
                      </button>
                    : heading}
                </th>
              );
            })}
          </tr>
        </thead>
        <tbody>
          {from > 0 && <tr class="spacer" aria-hidden="true"><td colSpan={columns.length} style={{ height: `${from * kRow}px` }} /></tr>}
          {rows.slice(from, to).map((row, i) => (
            <tr key={id(row)} class={chosen?.(row) ? "chosen" : undefined} aria-rowindex={many ? from + i + 2 : undefined}>
              {columns.map((c) => <td key={c.key} class={c.numeric ? "number" : c.wide ? "stretch" : undefined}>{c.show(row)}</td>)}
            </tr>
          ))}
          {to < rows.length && <tr class="spacer" aria-hidden="true"><td colSpan={columns.length} style={{ height: `${(rows.length - to) * kRow}px` }} /></tr>}
        </tbody>
        {foot}
      </table>
    </div>
  );
}

/** Rows in the order of a column; what is not there comes last. */
export function ordered<Row>(rows: readonly Row[], value: (row: Row) => unknown, descending: boolean): Row[] {
  const missing = (v: unknown): boolean => v === null || v === undefined || v === "" || (typeof v === "number" && Number.isNaN(v));
  const sign = descending ? -1 : 1;
  return rows
    .map((row, i) => ({ row, i, v: value(row) }))
    .sort((a, b) => {
      if (missing(a.v) || missing(b.v)) return Number(missing(a.v)) - Number(missing(b.v)) || a.i - b.i;
      const order = typeof a.v === "number" && typeof b.v === "number" ? a.v - b.v
        : String(a.v).localeCompare(String(b.v), "en", { numeric: true });
      return sign * order || a.i - b.i;
    })
    .map(({ row }) => row);
}
