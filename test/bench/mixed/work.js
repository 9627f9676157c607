// Works like a web server: parses, sorts, matches, renders, resolves promises. It never ends.
'use strict';

let seed = 1;
function random() {
  seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
  return seed;
}

function makeOrders(count) {
  const orders = [];
  for (let i = 0; i < count; i++) orders.push({ id: i, customer: 'c' + (random() % 97), lines: [random() % 7, random() % 11], note: 'n' + i });
  return orders;
}

function totals(orders) {
  const byCustomer = new Map();
  for (const order of orders) {
    byCustomer.set(order.customer, (byCustomer.get(order.customer) || 0) + order.lines.reduce((a, b) => a + b, 0));
  }
  return [...byCustomer].sort((a, b) => b[1] - a[1]);
}

function render(rows) {
  return rows.map(([name, sum]) => `<tr><td>${name.replace(/c(\d)/, 'C-$1')}</td><td>${sum.toFixed(2)}</td></tr>`).join('');
}

async function turn() {
  const orders = JSON.parse(JSON.stringify(makeOrders(300)));
  const pages = await Promise.all([1, 2, 3].map(async (n) => render(totals(orders.slice(n * 50)))));
  return pages.join('').split('<td>').length;
}

async function main() {
  for (let i = 0;; i++) {
    await turn();
    if (i % 100 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
  }
}
main();
