// The mock reducer's answers about lines: short and long functions, in one file and in several, with and without text.
import {hostile, sampledIn} from './fixtures.mjs';

const spin = `static uint64_t mix(uint64_t state, const uint8_t *block, size_t size)
{
	for (size_t i = 0; i < size; i += 8) {
		state ^= load_le64(block + i);
		state *= 0x9e3779b97f4a7c15;
		state = rotate_left(state, 31);
	}
	return state;
}

`;
const rest = Array.from({length: 60}, (_, i) => (i % 9 === 0 ? '' : `// what is between, line ${i}`)).join('\n');
const body = `
uint64_t spin_sixty(struct work *work)
{
	uint64_t state = work->seed;
	while (!work->stop) {
		if (work->queue.head == work->queue.tail) refill(&work->queue);
		state = mix(state, work->block, sizeof(work->block));
	}
	return state;
}`;
const spinText = (spin + rest + body).split('\n');
const spinFile = '/build/truth-1.4.2/src/spin.c';
const spinAt = (words) => 101 + spinText.findIndex((line) => line.includes(words));

const deep = `/home/builder/.cache/work/${'a-folder-with-a-long-name/'.repeat(8)}include/step_inlined.h`;
const long = `\treturn ${'combine(a, b, '.repeat(60)}0${')'.repeat(60)};`.slice(0, 512);
export const longFunction = {file: '/build/truth-1.4.2/src/generated/table.c', lines: 2000};

// [file, line, share of the function's samples], and text by file: [first line, lines].
const functions = {
  spin_sixty: {
    lines: [
      [spinFile, spinAt('load_le64'), 0.42],
      [spinFile, spinAt('*= 0x9e'), 0.23],
      [spinFile, spinAt('rotate_left'), 0.2],
      [spinFile, spinAt('size_t i = 0'), 0.105],
      [spinFile, spinAt('->stop'), 0.03],
      [spinFile, spinAt('refill'), 0.005],
      ['', 0, 0.01],
    ],
    text: {[spinFile]: [101, spinText]},
  },
  spin_thirty: {
    lines: [
      [spinFile, 191, 0.6],
      ['/build/truth-1.4.2/src/refill.h', 12, 0.25],
      ['', 0, 0.15],
    ],
    text: {},
  },
  step: {
    lines: [
      ['/build/truth-1.4.2/src/step.cc', 12, 0.5],
      [deep, 7, 0.3],
      [`/tmp/${hostile.control}/${hostile.image}`, 2, 0.15],
      ['/usr/include/c++/12/bits/stl_algo.h', 1943, 0.05],
    ],
    text: {
      '/build/truth-1.4.2/src/step.cc': [8, ['', 'Result Step::next()', '{', '\tif (done_) return {};', '\treturn fold(begin_, end_);\r', '}']],
      [deep]: [5, ['template <class T> T fold(T a, T b)', '{', long, '}']],
      [`/tmp/${hostile.control}/${hostile.image}`]: [1, [hostile.script, hostile.image, hostile.control]],
    },
  },
  run: {
    lines: Array.from({length: longFunction.lines}, (_, i) => [longFunction.file, i + 1, i === 1234 ? 0.3 : 0.7 / 1999]),
    text: {
      [longFunction.file]: [1, Array.from({length: longFunction.lines}, (_, i) => `    case ${i}: return table_${i}(x);`)],
    },
  },
};

const sampleNs = 1e9 / 19;
const ns = (count) => Math.round(count * sampleNs);

function lineOf([file, line], self, total, text, build_id, index) {
  const weights = (count) => ({ns: ns(count), count});
  const first = Math.ceil(total * 0.6);
  const at = (offset) => `0x${(0x401000 + 32 * index + offset).toString(16)}`;
  const addresses = [
    {build_id, address: at(0), ...weights(total - first)},
    {build_id, address: at(9), ...weights(first)},
  ].filter(({count}) => count > 0);
  return {file, line, text, self_ns: ns(self), self_count: self, total_ns: ns(total), total_count: total, addresses};
}

// How often the mock reducer answers that a debuginfod server has not sent the text of the files yet.
export const slowText = {times: 0};

export function lines(name, executable, keep) {
  const {self, total, build_id} = sampledIn(name, executable, keep);
  if (total === 0) return {function: name, executable, lines: [], sources: [], sources_coming: []};
  const {lines: places, text} = functions[name] ?? {lines: [['', 0, 1]], text: {}};
  let left = total;
  const counts = places.map(([, , share], i) => {
    const count = i === places.length - 1 ? left : Math.min(left, Math.max(1, Math.round(share * total)));
    left -= count;
    return count;
  });
  const textOf = ([file, line]) => text[file]?.[1][line - text[file][0]]?.slice(0, 512) ?? null;
  const found = places
    .map((place, i) => lineOf(place, self === total ? counts[i] : 0, counts[i], textOf(place), build_id, i))
    .filter(({total_count}) => total_count > 0)
    .sort((a, b) => (a.file < b.file ? -1 : a.file > b.file ? 1 : a.line - b.line));
  const sources = Object.entries(text).map(([file, [first_line, content]]) => ({file, first_line, text: content}));
  if (slowText.times > 0) {
    slowText.times--;
    return {function: name, executable, lines: found, sources: [], sources_coming: sources.map(({file}) => file)};
  }
  return {function: name, executable, lines: found, sources, sources_coming: []};
}
