// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: the gale authors
//
// Guava.java -- Guava's RateLimiter, one for each key in a ConcurrentHashMap, by the line protocol
// of driver.h.
//
//     java -cp guava.jar Guava.java DRAWS
//
// tryAcquire() either takes a permit at once or says no.  allow: a rate that is never reached.
// deny: a permit in 30 years, and the first is used up.
//
// Threads   A call may come from any.

import com.google.common.util.concurrent.RateLimiter;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

@SuppressWarnings("UnstableApiUsage")
public class Guava {
    private static final double RATE_MUCH = 1e12;
    private static final double RATE_LEAST = 1e-9;
    private static final int EVERY = 64; // calls, of which one is timed

    private static String folder;
    private static String[] keys = new String[0];
    private static int[] draws;
    private static String prepared = "";
    private static double rate;
    private static ConcurrentHashMap<String, RateLimiter> limiters = new ConcurrentHashMap<>();

    private static String keyOf(int id) {
        return String.format("client-%09d", id);
    }

    private static boolean ask(String key) {
        return limiters.computeIfAbsent(key, name -> RateLimiter.create(rate)).tryAcquire();
    }

    /** What a thread does and has counted. */
    private static final class Turn extends Thread {
        private final long end;
        private int at;
        private long allowed;
        private long denied;
        private long[] times = new long[4096];
        private int timed;

        Turn(long end, int at) {
            this.end = end;
            this.at = at;
        }

        private void one() {
            if (ask(keys[draws[at]])) {
                allowed++;
            } else {
                denied++;
            }
            at = at + 1 == draws.length ? 0 : at + 1;
        }

        @Override
        public void run() {
            for (;;) {
                long began = System.nanoTime();
                if (began >= end) {
                    return;
                }
                one();
                if (timed == times.length) {
                    times = Arrays.copyOf(times, 2 * timed);
                }
                times[timed++] = System.nanoTime() - began;
                for (int i = 1; i < EVERY; i++) {
                    one();
                }
            }
        }
    }

    private static String result(Turn[] turns, double seconds, double bytes) {
        long allowed = 0;
        long denied = 0;
        int count = 0;
        for (Turn turn : turns) {
            allowed += turn.allowed;
            denied += turn.denied;
            count += turn.timed;
        }
        long[] times = new long[count];
        count = 0;
        for (Turn turn : turns) {
            System.arraycopy(turn.times, 0, times, count, turn.timed);
            count += turn.timed;
        }
        Arrays.sort(times);
        long p50 = count == 0 ? 0 : times[count / 2];
        long p99 = count == 0 ? 0 : times[(int) (0.99 * (count - 1))];
        return String.format("operations=%d allowed=%d denied=%d failed=0 seconds=%.6f p50=%d p99=%d bytes=%.1f",
                allowed + denied, allowed, denied, seconds, p50, p99, bytes);
    }

    private static String run(int threads, double seconds) throws InterruptedException {
        long began = System.nanoTime();
        Turn[] turns = new Turn[threads];
        for (int i = 0; i < threads; i++) {
            turns[i] = new Turn(began + (long) (seconds * 1e9), (int) ((long) draws.length * i / threads));
            turns[i].start();
        }
        for (Turn turn : turns) {
            turn.join();
        }
        return result(turns, (System.nanoTime() - began) / 1e9, 0);
    }

    /** What is there after a collection. */
    private static double heap() throws InterruptedException {
        for (int i = 0; i < 3; i++) {
            System.gc();
            Thread.sleep(20);
        }
        Runtime runtime = Runtime.getRuntime();
        return runtime.totalMemory() - runtime.freeMemory();
    }

    private static String fill(int count) throws InterruptedException {
        Turn turn = new Turn(0, 0);
        limiters = new ConcurrentHashMap<>();
        prepared = "";
        rate = RATE_MUCH;
        double before = heap();
        long began = System.nanoTime();
        for (int id = 0; id < count; id++) {
            if (ask(keyOf(id))) {
                turn.allowed++;
            } else {
                turn.denied++;
            }
        }
        double seconds = (System.nanoTime() - began) / 1e9;
        return result(new Turn[] {turn}, seconds, (heap() - before) / count);
    }

    private static void prepare(String work, String space, int count) throws Exception {
        if (keys.length != count) {
            keys = new String[count];
            for (int id = 0; id < count; id++) {
                keys[id] = keyOf(id);
            }
            ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(Path.of(folder, "" + count)));
            draws = new int[bytes.remaining() / 4];
            bytes.order(ByteOrder.LITTLE_ENDIAN).asIntBuffer().get(draws);
            prepared = "";
        }
        if (prepared.equals(space)) {
            return;
        }
        limiters = new ConcurrentHashMap<>();
        rate = work.equals("deny") ? RATE_LEAST : RATE_MUCH;
        for (String key : keys) {
            ask(key);
        }
        prepared = space;
    }

    private static String answer(Map<String, String> words) throws Exception {
        String work = words.get("work");
        int count = (int) Double.parseDouble(words.getOrDefault("keys", "1"));
        int threads = Integer.parseInt(words.getOrDefault("threads", "1"));
        double seconds = Double.parseDouble(words.getOrDefault("seconds", "1"));
        switch (work) {
            case "fill":
                return fill(count);
            case "allow":
            case "deny":
                prepare(work, words.getOrDefault("space", ""), count);
                return run(threads, seconds);
            case "guard":
                return "cannot=it limits calls in a time, and not calls in flight";
            default:
                return "cannot=it limits one process, and has no store that others share";
        }
    }

    public static void main(String[] arguments) throws Exception {
        folder = arguments[0];
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            Map<String, String> words = new HashMap<>();
            for (String word : line.trim().split(" ")) {
                String[] parts = word.split("=", 2);
                words.put(parts[0], parts[1]);
            }
            System.out.println(answer(words));
        }
    }
}
