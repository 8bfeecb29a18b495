// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: the gale authors
//
// driver.js -- the line protocol of driver.h, for peers that run in Node.
//
// A peer has, each of them async or not:
//   prepare(work)   before works of a new space; a text if it cannot
//   ask(key)        "a", "d" or "f": allowed, denied, failed; none: it limits calls in flight only
//   guard(call)     calls the backend within the limit of calls in flight: true; or false
//   fillMost        so many keys at most for work=fill; undefined: as many as are asked for
//
// Node has one thread for all calls; its worker threads share no limiter.
'use strict';
const fs = require('fs');
const http = require('http');
const readline = require('readline');

const folder = process.argv[2];
exports.address = process.argv[3] || '';
exports.variant = process.argv[4] || '';

// "/path" is a socket, "HOST:PORT" is not.
exports.redisOptions = () => {
  if (exports.address.startsWith('/')) return { path: exports.address };
  const [host, port] = exports.address.split(':');
  return { host, port: Number(port) };
};

const PATIENCE_MS = 2000;
const LIMIT_MUCH = 2 ** 40;
const keyOf = (id) => 'client-' + String(id).padStart(9, '0');
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

let keys = [];
let draws = null;
let prepared = null;

function readWork(line) {
  const work = { work: '', space: '', keys: 1, threads: 1, depth: 1, seconds: 1 };
  for (const word of line.split(' ')) {
    const [name, value] = word.split('=');
    work[name] = name === 'work' || name === 'space' ? value : Number(value);
  }
  if (!work.limit) work.limit = work.work === 'deny' ? 1 : LIMIT_MUCH;
  return work;
}

// ---- Counting -------------------------------------------------------------------------------

const newTally = () => ({ a: 0, d: 0, f: 0, times: [] });

function note(tally, ms) {
  if (tally.times.length < 200000) tally.times.push(ms);
}

function resultOf(tally, seconds, bytes) {
  const times = Float64Array.from(tally.times).sort();
  const part = (p) => (times.length ? Math.round(times[Math.floor(p * (times.length - 1))] * 1e6) : 0);
  return `operations=${tally.a + tally.d + tally.f} allowed=${tally.a} denied=${tally.d} failed=${tally.f} ` +
    `seconds=${seconds.toFixed(6)} p50=${part(0.5)} p99=${part(0.99)} bytes=${bytes.toFixed(1)}`;
}

// ---- The works ------------------------------------------------------------------------------

async function lane(peer, work, at, until, tally) {
  for (;;) {
    const began = performance.now();
    if (began >= until) return;
    for (let i = 0; i < 16; i++) {
      const answer = await peer.ask(keys[draws[at]]);
      tally[answer]++;
      at = at + 1 === draws.length ? 0 : at + 1;
      if (i === 0) {
        const took = performance.now();
        note(tally, took - began);
        // Slow calls are timed each.
        if (took - began > 0.02) break;
      }
    }
  }
}

async function run(peer, work) {
  const tally = newTally();
  const began = performance.now();
  const lanes = [];
  for (let i = 0; i < work.depth; i++)
    lanes.push(lane(peer, work, Math.floor(draws.length / work.depth * i), began + work.seconds * 1000, tally));
  await Promise.all(lanes);
  return resultOf(tally, (performance.now() - began) / 1000, 0);
}

// What is there after a collection, for each key.
function heapBytes() {
  global.gc();
  global.gc();
  const memory = process.memoryUsage();
  return memory.heapUsed + memory.external;
}

async function fill(peer, work) {
  const tally = newTally();
  const before = heapBytes();
  const began = performance.now();
  await peer.prepare(work);
  const count = Math.min(work.keys, peer.fillMost || work.keys);
  await pass(peer, count, tally);
  const seconds = (performance.now() - began) / 1000;
  return resultOf(tally, seconds, (heapBytes() - before) / count);
}

// Each key once, 64 under way.
async function pass(peer, count, tally) {
  let next = 0;
  const one = async () => {
    while (next < count) tally[await peer.ask(keyOf(next++))]++;
  };
  await Promise.all(Array.from({ length: 64 }, one));
}

async function fleet(peer, work) {
  const tally = newTally();
  const began = performance.now();
  const from = began + work.from * 1000;
  const until = began + work.until * 1000;
  const calls = [];
  for (let count = 0; ; count++) {
    const due = from + count * 1000 / work.rate;
    if (due >= until) break;
    if (due - performance.now() > 1) await sleep(due - performance.now());
    const asked = performance.now();
    if (asked >= until) break;
    calls.push((async () => {
      tally[await peer.ask(keys[0])]++;
      note(tally, performance.now() - asked);
    })());
  }
  // A call that waits for ever has failed.
  await Promise.race([Promise.all(calls), sleep(PATIENCE_MS)]);
  const result = { ...tally, f: tally.f + calls.length - tally.a - tally.d - tally.f };
  return resultOf(result, (performance.now() - began) / 1000, 0);
}

async function outage(peer, work) {
  const began = performance.now();
  const end = began + work.seconds * 1000;
  const calls = [];
  for (let count = 0; performance.now() < end; count++) {
    const call = { asked: performance.now() - began, took: null, answer: 'p' };
    calls.push(call);
    (async () => {
      const answer = await peer.ask(keys[0]);
      if (call.took === null) {
        call.took = performance.now() - began - call.asked;
        call.answer = answer;
      }
    })();
    const due = began + (count + 1) * 1000 / work.rate;
    await sleep(Math.max(0, due - performance.now()));
  }
  for (const call of calls)
    if (call.took === null) call.took = performance.now() - began - call.asked;
  return calls.map((c) => `call=${c.asked.toFixed(3)}:${c.took.toFixed(3)}:${c.answer}`).join(' ');
}

async function guard(peer, work) {
  const tally = newTally();
  const began = performance.now();
  const until = began + work.seconds * 1000;
  const agent = new http.Agent({ keepAlive: true, maxSockets: work.workers });
  const callBackend = () => new Promise((resolve, reject) => {
    http.get({ host: '127.0.0.1', port: work.port, agent }, (reply) => {
      reply.resume();
      reply.on('end', resolve);
    }).on('error', reject);
  });
  const worker = async () => {
    for (;;) {
      const asked = performance.now();
      if (asked >= until) return;
      const allowed = await peer.guard(async () => {
        note(tally, performance.now() - asked);
        await callBackend();
      });
      tally[allowed ? 'a' : 'd']++;
      if (!allowed) await sleep(1);
    }
  };
  await Promise.all(Array.from({ length: work.workers }, worker));
  agent.destroy();
  return resultOf(tally, (performance.now() - began) / 1000, 0);
}

// ---- Lines ----------------------------------------------------------------------------------

async function makeReady(peer, work) {
  if (work.threads > 1) return 'Node has one thread for all calls, and worker threads share no limiter';
  if (work.work === 'guard' && !peer.guard) return 'it limits calls in a time, and not calls in flight';
  if (work.work !== 'guard' && !peer.ask) return 'it limits calls in flight, and not calls in a time';
  if (keys.length !== work.keys) {
    keys = Array.from({ length: work.keys }, (_, id) => keyOf(id));
    const bytes = fs.readFileSync(`${folder}/${work.keys}`);
    draws = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
    prepared = null;
  }
  if (work.work === 'fill' || prepared === work.space) return null;
  const why = await peer.prepare(work);
  if (why) return why;
  if (work.work === 'deny') await pass(peer, work.keys, newTally());
  prepared = work.space;
  return null;
}

exports.main = async (peer) => {
  process.on('unhandledRejection', (error) => {
    console.error(error.message);
  });
  const works = { allow: run, deny: run, fill, fleet, outage, guard };
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const work = readWork(line);
    let said;
    try {
      const why = await makeReady(peer, work);
      said = why ? `cannot=${why}` : await works[work.work](peer, work);
    } catch (error) {
      prepared = null;
      said = `cannot=${error.message.split('\n')[0]}`;
    }
    process.stdout.write(said + '\n');
  }
  process.exit(0);
};
