// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: the gale authors
//
// bottleneck.js -- Bottleneck: a queue of jobs with a reservoir, a limiter for each key.
//
// It is made to delay jobs; told to keep no queue (highWater 0), it drops those that exceed the
// limit, which is a denial.  Calls in flight are what it calls maxConcurrent.
'use strict';
const driver = require('./driver.js');
const Bottleneck = require('bottleneck');

const KEYS_MOST = 100000;
let limiters = null; // a Group, of a limiter for each key
let one = null;

function shared(id) {
  if (!driver.address) return {};
  return { id, datastore: 'ioredis', clientOptions: driver.redisOptions(), clearDatastore: false };
}

async function close() {
  // One that has lost its connection says so here.
  if (one) await one.disconnect().catch(() => {});
  if (limiters) await limiters.disconnect();
  one = null;
  limiters = null;
}

const answerOf = (promise) =>
  promise.then(() => 'a', (why) => (why instanceof Bottleneck.BottleneckError ? 'd' : 'f'));
const nothing = async () => {};

driver.main({
  fillMost: 5000,
  async prepare(work) {
    if (work.keys > KEYS_MOST) return 'a limiter for each of so many keys takes gigabytes';
    await close();
    if (work.work === 'guard') {
      one = new Bottleneck({ maxConcurrent: work.limit, ...shared('guard-' + work.space) });
      one.on('error', () => {});
      await one.ready();
      return null;
    }
    const options = { reservoir: work.limit, highWater: 0, strategy: Bottleneck.strategy.OVERFLOW };
    if (work.keys === 1) {
      one = new Bottleneck({ ...options, ...shared('one-' + work.space) });
      one.on('error', () => {});
      await one.ready();
      return null;
    }
    limiters = new Bottleneck.Group({ ...options, timeout: 86400000, ...shared('group-' + work.space) });
    limiters.on('error', () => {});
    return null;
  },
  ask: (key) => answerOf((one || limiters.key(key)).schedule(nothing)),
  guard: (call) => one.schedule(call).then(() => true, () => false),
});
