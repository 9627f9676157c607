// Builds the page into dist/: index.html, app.js, app.css, favicon.svg. With --tests, it instead bundles each
// *_test.ts into tests/ for node's own test runner.
import {build} from 'esbuild';
import {copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync} from 'node:fs';
import {join} from 'node:path';

function testFiles(directory) {
  return readdirSync(directory, {withFileTypes: true}).flatMap((entry) => {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) return testFiles(path);
    return entry.name.endsWith('_test.ts') ? [path] : [];
  });
}

// Returns the licenses of the packages in app.js. They require that each copy of the code contains the license.
function licenses() {
  const packages = ['preact', '@preact/signals', '@preact/signals-core', 'uplot'];
  const texts = packages.map(
    (name) => `${name}\n\n${readFileSync(join('node_modules', name, 'LICENSE'), 'utf8').trim()}`,
  );
  return `/*!\n${texts.join('\n\n\n')}\n*/`;
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
    target: ['chrome123', 'firefox120', 'safari17.5'], // the first versions with light-dark()
    minify: true,
    banner: {js: licenses()},
  });
  for (const name of ['index.html', 'favicon.svg']) copyFileSync(join('static', name), join('dist', name));
}
