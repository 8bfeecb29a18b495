// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: the gale authors
//
// semaphore.js -- redis-semaphore: calls in flight, counted in Redis through ioredis.
//
// A worker waits for its place as acquire() does by default: it tries again each 10 ms.
'use strict';
const driver = require('./driver.js');
const Redis = require('ioredis');
const { Semaphore } = require('redis-semaphore');

let client = null;
let name = '';
let limit = 1;

driver.main({
  async prepare(work) {
    if (!client) {
      client = new Redis(driver.redisOptions());
      client.on('error', () => {});
    }
    name = work.space;
    limit = work.limit;
    return null;
  },
  async guard(call) {
    const semaphore = new Semaphore(client, name, limit);
    await semaphore.acquire();
    try {
      await call();
    } finally {
      await semaphore.release();
    }
    return true;
  },
});
