// Makes a JavaScript engine run its native code without a just-in-time compiler (node --jitless): interpreter, garbage
// collector, JSON, regular expressions, sorting with callbacks, compression, hashing. Runs until it is killed.
const crypto = require('crypto');
const zlib = require('zlib');

function fibonacci(n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

function work(x) {
  const rows = [];
  for (let i = 0; i < 300; i++) rows.push({key: `row ${(x * i) % 997}`, values: [i, i / 3, null, true]});
  const text = JSON.stringify(rows);
  const sorted = JSON.parse(text).sort((a, b) => (a.key < b.key ? -1 : 1));
  const found = text.replace(/row (\d+)/g, (all, digits) => digits + sorted.length);
  const packed = zlib.deflateSync(text);
  const digest = crypto.createHash('sha256').update(found.repeat(10)).digest();
  const key = crypto.scryptSync(digest, 'salt', 16, {N: 256});
  return key[0] + fibonacci(12) + zlib.inflateSync(packed).length;
}

for (let total = 0;;) total += work(total % 1000);
