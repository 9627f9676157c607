// Removes from a lock file the entries that depend on where it was made: download addresses and funding links. The
// integrity hashes stay, so `npm ci` still refuses every package that is not the locked one.
import {readFileSync, writeFileSync} from 'node:fs';

for (const path of process.argv.slice(2)) {
  const lock = JSON.parse(readFileSync(path, 'utf8'));
  for (const entry of Object.values(lock.packages)) {
    delete entry.resolved;
    delete entry.funding;
  }
  writeFileSync(path, `${JSON.stringify(lock, null, 2)}\n`);
  if (readFileSync(path, 'utf8').includes('://')) {
    console.error(`${path}: still contains an address`);
    process.exitCode = 1;
  }
}
