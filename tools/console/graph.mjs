// What places the boxes of the Pipeline page.
export { default as dagre } from "@dagrejs/dagre";
