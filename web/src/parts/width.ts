// The pixels that there are, for what draws itself in them.
import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

/** The width of the element that gets `box` as its ref, as it changes; 0 before it is on the page. */
export function useWidth(): { box: RefObject<HTMLDivElement>; width: number } {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    setWidth(element.clientWidth);
    return () => observer.disconnect();
  }, []);
  return { box, width };
}
