#include "attention_view/attention_page.h"

namespace vkformer {

// The policy allows nothing from outside, so that the page works without a network and tells nobody
// that it is read.
const std::string_view kPageStart = R"PAGE(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>)PAGE";

const std::string_view kPageHead = R"PAGE(</title>
<style>
:root { color-scheme: light; --cell: 16px; }
body { font: 14px/1.4 system-ui, sans-serif; color: #202028; background: #fff; margin: 0;
  padding: 1rem; box-sizing: border-box; height: 100vh; display: flex; flex-direction: column; }
h1 { font-size: 1.2rem; margin: 0 0 .6rem; overflow-wrap: anywhere; }
form { display: flex; flex-wrap: wrap; gap: .4rem 1rem; align-items: center; margin-bottom: .6rem; }
#about { min-height: 2.8em; margin: 0 0 .6rem; overflow-wrap: anywhere; }
#frame { display: grid; grid-template: auto auto / auto auto; place-content: start; overflow: auto;
  flex: 1; min-height: 12rem; border: 1px solid #dee0e6; }
#corner { position: sticky; left: 0; top: 0; z-index: 3; background: #fff; }
#columns { position: sticky; top: 0; z-index: 2; background: #fff; display: flex; }
#rows { position: sticky; left: 0; z-index: 1; background: #fff; }
.token { font: 11px/1 ui-monospace, monospace; white-space: pre; overflow: hidden;
  text-overflow: ellipsis; box-sizing: border-box; cursor: default; unicode-bidi: isolate; }
#rows .token { height: var(--cell); line-height: var(--cell); max-width: 12em; padding: 0 4px;
  text-align: right; }
#columns .token { width: var(--cell); line-height: var(--cell); max-height: 12em; padding: 4px 0;
  writing-mode: vertical-rl; transform: rotate(180deg); }
.token:focus-visible, .token.from { outline: 2px solid #d62020; outline-offset: -2px; }
.token.hot { font-weight: bold; }
#picture { position: relative; }
#map { display: block; image-rendering: pixelated; }
#mark { position: absolute; box-sizing: border-box; border: 1px solid #d62020;
  pointer-events: none; }
#bar { width: 8em; height: .9em; border: 1px solid #787a84; vertical-align: middle; }
</style>
</head>
<body>
<h1>)PAGE";

const std::string_view kPageBody = R"PAGE(</h1>
<form>
<label>kind <select id="kind"></select></label>
<label>layer <select id="layer"></select></label>
<label>head <select id="head"></select></label>
<label>darkest <select id="range"><option value="max">the largest</option><option value="one">1</option></select></label>
<span>0 <canvas id="bar" width="256" height="1"></canvas> <span id="top"></span></span>
</form>
<p id="about" role="status" aria-live="polite"></p>
<div id="frame">
<div id="corner"></div>
<div id="columns" role="group" aria-label="keys"></div>
<div id="rows" role="group" aria-label="queries"></div>
<div id="picture"><canvas id="map" role="img"></canvas><div id="mark" hidden></div></div>
</div>
<noscript>This page needs JavaScript, which it brings along.</noscript>
<script id="data" type="application/json">)PAGE";

const std::string_view kPageEnd = R"PAGE(</script>
<script>
'use strict';
const get = id => document.getElementById(id);
const page = JSON.parse(get('data').textContent);
const bytes = text => Uint8Array.from(atob(text), c => c.charCodeAt(0));
const colors = bytes(page.colors);
const help = 'Point at a token, or move to it with Tab and the arrow keys, to see what it attends to.';
const view = {};

function color(share) {
  if (!Number.isFinite(share)) return [214, 32, 32];
  const at = 3 * Math.round(255 * Math.min(Math.max(share, 0), 1));
  return [colors[at], colors[at + 1], colors[at + 2]];
}

// The weights of a layer's head, or their mean over heads where head is -1.
function weightsOf(map, layer, head) {
  const size = map.rows * map.columns, from = map.layers[layer];
  from.bytes = from.bytes || bytes(from.data);
  const out = new Float32Array(size);
  const first = head < 0 ? 0 : head, end = head < 0 ? map.heads : head + 1;
  for (let h = first; h < end; ++h) {
    for (let i = 0; i < size; ++i) {
      const byte = from.bytes[h * size + i];
      out[i] += byte === 255 ? NaN : byte * from.scale[h] / 254;
    }
  }
  return out.map(value => value / (end - first));
}

// The last of the names is chosen, as in the picture of one map: the last layer, the mean over heads.
function fill(select, names) {
  select.replaceChildren(...names.map((name, i) => new Option(name, i)));
  select.value = names.length - 1;
  select.disabled = names.length < 2;
}

// Cells as large as the window has room for; where they would be too small, the map scrolls.
function fit() {
  const {map} = view, frame = get('frame');
  const wide = frame.clientWidth - get('rows').offsetWidth;
  const high = frame.clientHeight - get('columns').offsetHeight;
  view.cell = Math.max(14, Math.floor(Math.min(wide / map.columns, high / map.rows)));
  document.documentElement.style.setProperty('--cell', view.cell + 'px');
}

function addTokens(axis, labels, count) {
  const tokens = Array.from({length: count}, (_, i) => {
    const token = document.createElement('div');
    token.className = 'token';
    token.textContent = labels.length ? labels[i] || '\u2205' : i;
    token.title = token.textContent;
    token.tabIndex = i ? -1 : 0;
    token.dataset.index = i;
    return token;
  });
  get(axis).replaceChildren(...tokens);
}

function paint(data, share) {
  for (let i = 0; 4 * i < data.length; ++i) {
    [data[4 * i], data[4 * i + 1], data[4 * i + 2]] = color(share(i));
    data[4 * i + 3] = 255;
  }
}

function draw() {
  const {map, weights} = view, canvas = get('map'), pen = canvas.getContext('2d');
  canvas.width = map.columns;
  canvas.height = map.rows;
  canvas.style.width = map.columns * view.cell + 'px';
  canvas.style.height = map.rows * view.cell + 'px';
  const pixels = pen.createImageData(map.columns, map.rows);
  paint(pixels.data, i => weights[i] / view.top);
  pen.putImageData(pixels, 0, 0);
  canvas.setAttribute('aria-label', 'attention weights, ' + describe());
  const ramp = get('bar').getContext('2d'), line = ramp.createImageData(256, 1);
  paint(line.data, i => i / 255);
  ramp.putImageData(line, 0, 0);
  get('top').textContent = Number(view.top.toPrecision(3));
}

function describe() {
  const named = id => get(id).selectedOptions[0].textContent;
  return named('kind') + ' attention, layer ' + named('layer') + ', head ' + named('head');
}

// Takes over the choices; keepTokens where only weights change.
function choose(keepTokens) {
  const map = page.maps[get('kind').value];
  if (!keepTokens) {
    fill(get('layer'), map.layers.map(layer => layer.layer));
    const heads = Array.from({length: map.heads}, (_, h) => map.first < 0 ? 'mean' : map.first + h);
    fill(get('head'), map.heads > 1 ? [...heads, 'mean'] : heads);
    addTokens('rows', map.rowLabels, map.rows);
    addTokens('columns', map.columnLabels, map.columns);
  }
  const head = Number(get('head').value);
  view.map = map;
  fit();
  view.weights = weightsOf(map, Number(get('layer').value), head < map.heads ? head : -1);
  const largest = view.weights.reduce((a, b) => b > a ? b : a, 0);
  view.top = get('range').value === 'one' || largest === 0 ? 1 : largest;
  draw();
  if (keepTokens && view.axis) light(view.axis, view.index); else clear();
}

function clear() {
  view.axis = null;
  for (const token of document.querySelectorAll('.token')) {
    token.classList.remove('from', 'hot');
    token.style.background = token.style.color = '';
    delete token.dataset.weight;
  }
  get('mark').hidden = true;
  get('about').textContent = help;
}

// Shows what the query at `index` attends to, or who attends to the key there.
function light(axis, index) {
  clear();
  const {map, weights, cell} = view, byRow = axis === 'rows';
  const count = byRow ? map.columns : map.rows;
  const seen = Array.from({length: count},
    (_, i) => weights[byRow ? index * map.columns + i : i * map.columns + index]);
  const most = seen.reduce((a, b) => b > a ? b : a, 0);
  const others = get(byRow ? 'columns' : 'rows').children, from = get(axis).children[index];
  seen.forEach((weight, i) => {
    const rgb = color(most > 0 ? weight / most : weight), token = others[i];
    token.dataset.weight = weight.toFixed(4);
    token.style.background = 'rgb(' + rgb + ')';
    token.style.color = rgb[0] * .3 + rgb[1] * .6 + rgb[2] * .1 < 140 ? '#fff' : '';
    token.classList.toggle('hot', weight > 0 && weight >= most / 2);
  });
  from.classList.add('from');
  const mark = get('mark');
  mark.hidden = false;
  mark.style.cssText = byRow ?
    `left:0;top:${index * cell}px;width:${map.columns * cell}px;height:${cell}px` :
    `top:0;left:${index * cell}px;height:${map.rows * cell}px;width:${cell}px`;
  const best = seen.map((weight, i) => [weight, i]).filter(pair => pair[0] > 0)
    .sort((a, b) => b[0] - a[0] || a[1] - b[1]).slice(0, 6);
  get('about').textContent = describe() + ': ' + (byRow ? 'query ' : 'key ') + index + ' \u201c' +
    from.textContent + '\u201d ' + (byRow ? 'attends to ' : 'is attended to by ') +
    (best.map(([weight, i]) => '\u201c' + others[i].textContent + '\u201d ' + weight.toFixed(3))
      .join(', ') || 'nothing');
  view.axis = axis;
  view.index = index;
}

for (const axis of ['rows', 'columns']) {
  const show = event => {
    const token = event.target.closest('.token');
    if (token) light(axis, Number(token.dataset.index));
  };
  get(axis).addEventListener('mouseover', show);
  get(axis).addEventListener('focusin', show);
  get(axis).addEventListener('keydown', event => {
    const tokens = get(axis).children, now = Number(event.target.dataset.index);
    const to = {ArrowRight: now + 1, ArrowDown: now + 1, ArrowLeft: now - 1, ArrowUp: now - 1,
      Home: 0, End: tokens.length - 1}[event.key];
    if (to === undefined) return;
    event.preventDefault();
    if (!tokens[to]) return;
    event.target.tabIndex = -1;
    tokens[to].tabIndex = 0;
    tokens[to].focus();
    light(axis, to);
  });
}
get('map').addEventListener('mousemove', event => {
  const row = Math.floor(event.offsetY / view.cell), column = Math.floor(event.offsetX / view.cell);
  const {map, weights} = view;
  if (row < 0 || column < 0 || row >= map.rows || column >= map.columns) return;
  if (view.axis !== 'rows' || view.index !== row) light('rows', row);
  get('columns').querySelectorAll('.from').forEach(token => token.classList.remove('from'));
  get('columns').children[column].classList.add('from');
  get('about').textContent = describe() + ': \u201c' + get('rows').children[row].textContent +
    '\u201d to \u201c' + get('columns').children[column].textContent + '\u201d ' +
    weights[row * map.columns + column].toFixed(4);
});
get('frame').addEventListener('mouseleave', () => {
  const token = document.activeElement.closest('.token');
  if (token) light(token.parentElement.id, Number(token.dataset.index)); else clear();
});
fill(get('kind'), page.maps.map(map => map.kind));
get('kind').value = 0;
get('kind').addEventListener('change', () => choose(false));
for (const id of ['layer', 'head', 'range']) get(id).addEventListener('change', () => choose(true));
choose(false);
window.addEventListener('resize', () => choose(true));
</script>
</body>
</html>
)PAGE";

}  // namespace vkformer
