// Builds the page into dist/: index.html, app.js, app.css, favicon.svg. With --tests: bundles each *_test.ts into
// tests/ for node's own test runner instead.
import {build} from 'esbuild';
import {copyFileSync, mkdirSync, readdirSync, rmSync} from 'node:fs';
import {join} from 'node:path';

function testFiles(directory) {
  return readdirSync(directory, {withFileTypes: true}).flatMap((entry) => {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) return testFiles(path);
    return entry.name.endsWith('_test.ts') ? [path] : [];
  });
}

const common = {bundle: true, charset: 'utf8', logLevel: 'warning', jsx: 'automatic', jsxImportSource: 'preact'};

if (process.argv.includes('--tests')) {
  rmSync('tests', {recursive: true, force: true});
  await build({
    ...common,
    entryPoints: testFiles('src'),
    outdir: 'tests',
    outExtension: {'.js': '.mjs'},
    platform: 'node',
    format: 'esm',
    target: 'node18',
    sourcemap: 'inline',
  });
} else {
  mkdirSync('dist', {recursive: true});
  await build({
    ...common,
    entryPoints: {app: 'src/main.tsx'},
    outdir: 'dist',
    format: 'esm',
    target: ['chrome123', 'firefox120', 'safari17.5'], // the first with light-dark(),
    minify: true,
    legalComments: 'inline',
  });
  for (const name of ['index.html', 'favicon.svg']) copyFileSync(join('static', name), join('dist', name));
}
