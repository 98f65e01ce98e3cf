import { render } from "preact";
import { App } from "./app";
import "./style/base.css";
import "./style/layout.css";
import "./style/parts.css";
import "./style/pages.css";
import "uplot/dist/uPlot.min.css";

const root = document.getElementById("app");
if (root) render(<App />, root);
