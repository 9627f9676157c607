// Takes out of a lock file what depends on where it was made: download addresses and funding links. The integrity
// hashes stay, so `npm ci` still refuses any package that is not the one locked.
import {readFileSync, writeFileSync} from 'node:fs';

for (const path of process.argv.slice(2)) {
  const lock = JSON.parse(readFileSync(path, 'utf8'));
  for (const entry of Object.values(lock.packages)) {
    delete entry.resolved;
    delete entry.funding;
  }
  writeFileSync(path, `${JSON.stringify(lock, null, 2)}\n`);
  if (readFileSync(path, 'utf8').includes('://')) {
    console.error(`${path}: still holds an address`);
    process.exitCode = 1;
  }
}
