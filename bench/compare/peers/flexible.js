// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: the gale authors
//
// flexible.js -- rate-limiter-flexible: in memory, or in Redis through ioredis.
//
// As its documentation says, ioredis keeps no commands while it has no connection.
'use strict';
const driver = require('./driver.js');
const { RateLimiterMemory, RateLimiterRedis } = require('rate-limiter-flexible');

let client = null;
let limiter = null;

async function connect() {
  const Redis = require('ioredis');
  client = new Redis({ ...driver.redisOptions(), enableOfflineQueue: false });
  client.on('error', () => {}); // the calls say so
  await new Promise((resolve) => client.once('ready', resolve));
}

driver.main({
  async prepare(work) {
    const options = { points: work.limit, duration: 86400, keyPrefix: work.space || 'fill' };
    if (!driver.address) {
      limiter = new RateLimiterMemory(options);
      return null;
    }
    if (!client) await connect();
    limiter = new RateLimiterRedis({ ...options, storeClient: client });
    return null;
  },
  ask: (key) => limiter.consume(key).then(() => 'a', (why) => (why instanceof Error ? 'f' : 'd')),
});
