// XSS payloads. Each would set `hit`, open a dialog, add an element or send a request if it were not escaped.
const mark = "globalThis.hit=1";
/** Payloads with their kind of injection. */
const attacks = [
  ["script", `<script>${mark}</script>`],
  ["handler", `<img src=x onerror="${mark}">`],
  ["handler", `<img src=x onerror=alert(1)>`],
  ["handler", `<svg onload="${mark}">`],
  ["script", `<svg><script>${mark}</script></svg>`],
  ["handler", `<svg><animate onbegin="${mark}" attributeName=x dur=1s>`],
  ["frame", `<iframe src="javascript:parent.hit=1"></iframe>`],
  ["frame", `<iframe srcdoc="<script>parent.hit=1</script>"></iframe>`],
  ["frame", `<object data="javascript:${mark}"></object>`],
  ["frame", `<embed src="javascript:${mark}">`],
  ["handler", `<a href="javascript:${mark}" autofocus onfocus="${mark}">x</a>`],
  ["handler", `<input autofocus onfocus="${mark}">`],
  ["handler", `<details open ontoggle="${mark}">`],
  ["handler", `<video><source onerror="${mark}"></video>`],
  ["handler", `<audio src=x onerror="${mark}">`],
  ["handler", `<body onload="${mark}">`],
  ["handler", `<marquee onstart="${mark}">x</marquee>`],
  ["url", `<form action="javascript:${mark}"><button>x</button></form>`],
  ["url", `<math><mi xlink:href="javascript:${mark}">x</mi></math>`],
  ["script", `<template><script>${mark}</script></template>`],
  ["resource", `<style>@import "//evil.invalid/x.css";*{display:none}</style>`],
  ["resource", `<link rel=stylesheet href="//evil.invalid/x.css">`],
  ["resource", `<meta http-equiv=refresh content="0;url=//evil.invalid/">`],
  ["resource", `<base href="//evil.invalid/">`],
  ["breakout", `"><script>${mark}</script>`],
  ["breakout", `'><img src=x onerror='${mark}'>`],
  ["breakout", `</textarea><script>${mark}</script>`],
  ["breakout", `</title><script>${mark}</script>`],
  ["breakout", `</script><script>${mark}</script>`],
  ["breakout", `--><script>${mark}</script><!--`],
  ["breakout", `]]><script>${mark}</script>`],
  ["url", `javascript:${mark}`],
  ["url", `data:text/html,<script>${mark}</script>`],
  ["expression", `{{constructor.constructor("${mark}")()}}`],
  ["expression", "${globalThis.hit=1}"],
  ["markdown", `[x](javascript:${mark})`],
  ["markdown", `![x](//evil.invalid/x.png)`],
  ["evasion", `<scr<script>ipt>${mark}</scr</script>ipt>`],
  ["invisible", `\u202e<b>turned</b>\u202c`],
  ["evasion", `<IMG SRC=&#106;avascript:${mark}>`],
  ["evasion", `\\u003cscript\\u003e${mark}\\u003c/script\\u003e`],
  ["breakout", `x" style="background:url(//evil.invalid/x)" data-x="`],
  ["property", `__proto__`],
  ["property", `constructor`],
  ["property", `toString`],
];
const kinds = new Map(attacks.map(([kind, text]) => [text, kind]));
export const payloads = attacks.map(([, text]) => text);
export const kindOf = (payload) => kinds.get(payload);

/** Elements that no view contains unless a payload was injected. */
export const injected =
  'iframe, object, embed, marquee, math, base, body video, body audio, meta[http-equiv="refresh"], form[action], [onerror], [onload], [onfocus], [onbegin], [ontoggle], [onstart], a[href^="javascript"], body script, body style, body link[href*="evil"], main b, img[src*="evil"], img[src="x"]';
