// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: the gale authors
//
// xtime.go -- Go's x/time/rate, one limiter for each key in a map, by the line protocol of driver.h.
//
//	xtime DRAWS
//
// The package has no limiter by key.  The map is what its users write: a sync.Map, since all
// keys are there before they are asked for.  Allow() takes a token at once or says no.  allow: a
// rate and a burst that are never reached.  deny: a token in 30 years, and the first is used up.
//
// Threads   A call may come from any goroutine.
package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const every = 64 // calls, of which one is timed

var (
	folder   string
	keys     []string
	draws    []uint32
	prepared string
	limiters *sync.Map
	much     bool
)

func keyOf(id int) string {
	return fmt.Sprintf("client-%09d", id)
}

func newLimiter() *rate.Limiter {
	if much {
		return rate.NewLimiter(1e12, 1<<30)
	}
	return rate.NewLimiter(1e-9, 1)
}

func ask(key string) bool {
	found, ok := limiters.Load(key)
	if !ok {
		found, _ = limiters.LoadOrStore(key, newLimiter())
	}
	return found.(*rate.Limiter).Allow()
}

// What a goroutine has counted.
type tally struct {
	allowed, denied uint64
	times           []int64
}

func (t *tally) count(allowed bool) {
	if allowed {
		t.allowed++
	} else {
		t.denied++
	}
}

func (t *tally) run(at int, end time.Time) {
	one := func() {
		t.count(ask(keys[draws[at]]))
		at++
		if at == len(draws) {
			at = 0
		}
	}
	for {
		began := time.Now()
		if !began.Before(end) {
			return
		}
		one()
		t.times = append(t.times, time.Since(began).Nanoseconds())
		for i := 1; i < every; i++ {
			one()
		}
	}
}

func result(tallies []tally, seconds, bytes float64) string {
	var all tally
	for _, t := range tallies {
		all.allowed += t.allowed
		all.denied += t.denied
		all.times = append(all.times, t.times...)
	}
	sort.Slice(all.times, func(i, j int) bool { return all.times[i] < all.times[j] })
	var p50, p99 int64
	if n := len(all.times); n > 0 {
		p50, p99 = all.times[n/2], all.times[(n-1)*99/100]
	}
	return fmt.Sprintf("operations=%d allowed=%d denied=%d failed=0 seconds=%.6f p50=%d p99=%d bytes=%.1f",
		all.allowed+all.denied, all.allowed, all.denied, seconds, p50, p99, bytes)
}

func run(threads int, seconds float64) string {
	began := time.Now()
	end := began.Add(time.Duration(seconds * 1e9))
	tallies := make([]tally, threads)
	var group sync.WaitGroup
	for i := range tallies {
		group.Add(1)
		go func(i int) {
			defer group.Done()
			tallies[i].run(len(draws)*i/threads, end)
		}(i)
	}
	group.Wait()
	return result(tallies, time.Since(began).Seconds(), 0)
}

// What is there after a collection.
func heap() float64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}

func fill(count int) string {
	limiters, prepared, much = &sync.Map{}, "", true
	before := heap()
	began := time.Now()
	tallies := make([]tally, 1)
	for id := 0; id < count; id++ {
		tallies[0].count(ask(keyOf(id)))
	}
	seconds := time.Since(began).Seconds()
	after := heap()
	line := result(tallies, seconds, (after-before)/float64(count))
	runtime.KeepAlive(limiters)
	return line
}

func prepare(work, space string, count int) {
	if len(keys) != count {
		keys = make([]string, count)
		for id := range keys {
			keys[id] = keyOf(id)
		}
		bytes, err := os.ReadFile(folder + "/" + strconv.Itoa(count))
		if err != nil {
			panic(err)
		}
		draws = make([]uint32, len(bytes)/4)
		for i := range draws {
			draws[i] = binary.LittleEndian.Uint32(bytes[4*i:])
		}
		prepared = ""
	}
	if prepared == space {
		return
	}
	limiters, much = &sync.Map{}, work == "allow"
	for _, key := range keys {
		ask(key)
	}
	// A map that has been read often enough is read without a lock.
	for _, key := range keys {
		limiters.Load(key)
	}
	prepared = space
}

func answer(words map[string]string) string {
	number := func(name string) float64 {
		value, err := strconv.ParseFloat(words[name], 64)
		if err != nil {
			return 1
		}
		return value
	}
	switch work := words["work"]; work {
	case "fill":
		return fill(int(number("keys")))
	case "allow", "deny":
		prepare(work, words["space"], int(number("keys")))
		return run(int(number("threads")), number("seconds"))
	case "guard":
		return "cannot=it limits calls in a time, and not calls in flight"
	default:
		return "cannot=it limits one process, and has no store that others share"
	}
}

func main() {
	folder = os.Args[1]
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		words := map[string]string{}
		for _, word := range strings.Fields(lines.Text()) {
			parts := strings.SplitN(word, "=", 2)
			words[parts[0]] = parts[1]
		}
		fmt.Println(answer(words))
	}
}
