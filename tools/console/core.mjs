// What every page needs.
export { h, render, Fragment } from "preact";
export { useState, useEffect, useRef, useMemo, useCallback } from "preact/hooks";
export { default as htm } from "htm";
export { default as uPlot } from "uplot";
