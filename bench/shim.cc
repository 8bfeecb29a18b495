// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: the gale authors
//
// shim.cc -- Google Benchmark behind bench.h, and the table at the end.
//
// The library decides how many operations a run takes and shuffles the repetitions of
// all rows; we collect its times and hold each row's median to its floor's.

#include "bench/bench.h"

#include <benchmark/benchmark.h>

#include <regex.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

struct bench {
	benchmark::State *state;
	const bench_row *row;
};

namespace
{

// A multiple of 16, and large enough to make the call of bench_batch vanish.
constexpr uint64_t kBatch = 1024;

// Bytes that one process takes more than the one before: no part of a page.
constexpr size_t kElsewhere = 4096 * 3 + 208;

struct Options {
	bool smoke = false;
	bool strict = false;
};

struct Row {
	bench_row is;
	bool wanted = false;
	bool ready = false;
};

struct Measured {
	double median = 0;
	double spread = 0; // half of the runs lie within so much of each other
	double repetitions = 0;
	std::map<std::string, double> counts;
};

Options options;
thread_local const char *running = "setting up";
std::mutex preparing;
std::deque<Row> rows; // they stay where they are
std::vector<bench_figure> figures;
std::vector<bench_figures> sets;
std::map<std::string, std::vector<double>> times;
std::map<std::string, std::map<std::string, double>> counts;

void prepare(Row *row)
{
	std::lock_guard<std::mutex> hold(preparing);

	if (!row->ready && row->is.prepare)
		row->is.prepare(row->is.arg);
	row->ready = true;
}

int threads_of(const bench_row &row)
{
	return row.threads > 0 ? row.threads : 1;
}

bool by_the_wall(const bench_row &row)
{
	return row.waits || threads_of(row) > 1;
}

bool by_the_wall(const std::string &name)
{
	for (const Row &row : rows)
		if (name == row.is.name)
			return by_the_wall(row.is);
	return false;
}

// The user's --benchmark_filter: an extended regular expression.
class Filter
{
      public:
	Filter()
	{
		std::string pattern = benchmark::GetBenchmarkFilter();

		if (regcomp(&compiled, pattern.c_str(), REG_EXTENDED | REG_NOSUB) != 0)
			bench_fail("the filter is not a regular expression");
	}
	~Filter()
	{
		regfree(&compiled);
	}
	Filter(const Filter &) = delete;
	Filter &operator=(const Filter &) = delete;

	bool matches(const char *name) const
	{
		return regexec(&compiled, name, 0, nullptr, 0) == 0;
	}

      private:
	regex_t compiled;
};

// Marks the rows that the filter matches, and their floors.
void choose(const Filter &filter)
{
	for (Row &row : rows)
		row.wanted = filter.matches(row.is.name);
	for (const Row &row : rows)
		for (Row &floor : rows)
			if (row.wanted && row.is.floor &&
			    std::strcmp(row.is.floor, floor.is.name) == 0)
				floor.wanted = true;
}

// ---- Running
// -------------------------------------------------------------------------

void register_row(Row *row)
{
	auto run = [row](benchmark::State &state) {
		bench b = { &state, &row->is };

		running = row->is.name;
		prepare(row);
		row->is.run(&b);
	};
	auto *made = benchmark::RegisterBenchmark(row->is.name, run);

	made->Threads(threads_of(row->is));
	if (by_the_wall(row->is))
		made->UseRealTime();
	if (row->is.operations > 0 && !options.smoke)
		made->Iterations(static_cast<int64_t>(row->is.operations));
}

class Collector : public benchmark::BenchmarkReporter
{
      public:
	bool ReportContext(const Context &) override
	{
		return true;
	}

	void ReportRuns(const std::vector<Run> &runs) override
	{
		for (const Run &run : runs)
			if (run.run_type == Run::RT_Iteration)
				take(run);
		if (isatty(STDERR_FILENO))
			std::fprintf(stderr, "\r%zu rows measured ", times.size());
	}

	void Finalize() override
	{
		if (isatty(STDERR_FILENO))
			std::fprintf(stderr, "\n");
	}

      private:
	static void take(const Run &run)
	{
		const std::string &name = run.run_name.function_name;

		bench_expect(!run.error_occurred, run.error_message.c_str());
		times[name].push_back(by_the_wall(name) ? run.GetAdjustedRealTime()
		                                        : run.GetAdjustedCPUTime());
		for (const auto &[what, counter] : run.counters)
			counts[name][what] += counter.value; // of all repetitions
	}
};

// In a child, whose memory was not used before.
template <typename Measure>
std::vector<double> measure(const char *name, size_t count, const Measure &work)
{
	std::vector<double> values(count);
	auto bytes = static_cast<ssize_t>(count * sizeof(double));
	int ends[2];
	pid_t child;

	bench_expect(pipe(ends) == 0, "pipe");
	child = fork();
	bench_expect(child >= 0, "fork");
	if (child == 0) {
		work(values.data());
		_exit(write(ends[1], values.data(), count * sizeof(double)) == bytes
		          ? 0
		          : 1);
	}
	close(ends[1]);
	bench_expect(read(ends[0], values.data(), count * sizeof(double)) == bytes,
	             name);
	close(ends[0]);
	waitpid(child, nullptr, 0);
	return values;
}

void measure_set(const bench_figures &set)
{
	unsigned processes = options.smoke ? 1 : std::max(set.processes, 1U);

	for (unsigned process = 0; process < processes; process++) {
		auto elsewhere = [&](double *ret) {
			bench_keep(std::malloc(1 + process * kElsewhere));
			set.measure(set.arg, ret);
		};
		std::vector<double> values =
		    measure(set.names[0], set.count, elsewhere);

		for (size_t i = 0; i < set.count; i++)
			times[set.names[i]].push_back(values[i]);
	}
}

void measure_figures(const Filter &filter)
{
	for (const bench_figure &figure : figures)
		if (filter.matches(figure.name))
			times[figure.name] = measure(figure.name, 1, [&](double *ret) {
				*ret = figure.measure(figure.arg);
			});
	for (const bench_figures &set : sets)
		if (std::any_of(set.names, set.names + set.count,
		                [&](const char *name) { return filter.matches(name); }))
			measure_set(set);
}

// ---- The table
// -----------------------------------------------------------------------

Measured measured(const std::string &name)
{
	std::vector<double> sorted = times.at(name);
	size_t count = sorted.size();
	Measured result;

	std::sort(sorted.begin(), sorted.end());
	result.median = (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
	result.spread = sorted[count * 3 / 4] - sorted[count / 4];
	result.repetitions = static_cast<double>(count);
	result.counts = counts[name];
	return result;
}

std::string text(const char *format, double value)
{
	char buffer[32];

	std::snprintf(buffer, sizeof(buffer), format, value);
	return buffer;
}

const char *verdict(double value, double bar)
{
	return value <= bar ? "holds" : "misses";
}

using Line = std::vector<std::string>;

const Line kHeads = { "question", "row", "ns", "spread", "floor", "ratio", "bar", "" };

void split(const std::string &name, Line *line)
{
	size_t slash = name.find('/');

	line->push_back(name.substr(0, slash));
	line->push_back(name.substr(slash + 1));
}

std::string notes(const Measured &row)
{
	std::string all;

	for (const auto &[what, share] : row.counts)
		if (share > 0)
			all += text("; %.2g %% ", 100 * share / row.repetitions) + what;
	return all;
}

Line line_of(const bench_row &row, bool *missed)
{
	Measured own = measured(row.name);
	Line line;

	split(row.name, &line);
	line[1] += notes(own);
	line.push_back(text("%.1f", own.median));
	line.push_back(text("%.0f %%", 100 * own.spread / own.median));
	if (!row.floor || times.count(row.floor) == 0) {
		line.insert(line.end(), { "", "", "", "" });
		return line;
	}
	double ratio = own.median / measured(row.floor).median;

	line.push_back(row.floor);
	line.push_back(text("%.2f", ratio));
	line.push_back(row.bar > 0 ? text("%g", row.bar) : "");
	line.push_back(row.bar > 0 ? verdict(ratio, row.bar) : "");
	*missed |= row.bar > 0 && ratio > row.bar;
	return line;
}

Line line_of(const bench_figure &figure, bool *missed)
{
	Measured own = measured(figure.name);
	double value = own.median;
	Line line;

	split(figure.name, &line);
	line.insert(
	    line.end(),
	    { text(value < 10 ? "%.3g " : "%.0f ", value) + figure.unit,
	      own.repetitions > 1 ? text("%.0f %%", 100 * own.spread / value) : "", "",
	      "", figure.bar > 0 ? text("%g ", figure.bar) + figure.unit : "",
	      figure.bar > 0 ? verdict(value, figure.bar) : "" });
	*missed |= figure.bar > 0 && value > figure.bar;
	return line;
}

bench_figure one_of(const bench_figures &set, size_t i)
{
	return { set.names[i], set.units ? set.units[i] : set.unit, nullptr, nullptr,
		 set.bars ? set.bars[i] : 0 };
}

void print(const Line &line, const std::vector<size_t> &widths)
{
	for (size_t i = 0; i < line.size(); i++) {
		bool is_text = i == 0 || i == 1 || i == 4 || i == 7;
		int width = static_cast<int>(widths[i]);

		std::printf("| %*s ", is_text ? -width : width, line[i].c_str());
	}
	std::printf("|\n");
}

void print_rule(const std::vector<size_t> &widths)
{
	for (size_t width : widths)
		std::printf("|%s", std::string(width + 2, '-').c_str());
	std::printf("|\n");
}

// Prints what was measured; true if a row misses its bar.
bool print_table()
{
	std::vector<size_t> widths(kHeads.size());
	std::vector<Line> lines = { kHeads };
	bool missed = false;

	for (const Row &row : rows)
		if (times.count(row.is.name) > 0)
			lines.push_back(line_of(row.is, &missed));
	for (const bench_figure &figure : figures)
		if (times.count(figure.name) > 0)
			lines.push_back(line_of(figure, &missed));
	for (const bench_figures &set : sets)
		for (size_t i = 0; i < set.count; i++)
			if (times.count(set.names[i]) > 0)
				lines.push_back(line_of(one_of(set, i), &missed));
	for (const Line &line : lines)
		for (size_t i = 0; i < line.size(); i++)
			widths[i] = std::max(widths[i], line[i].size());
	print(lines[0], widths);
	print_rule(widths);
	for (size_t i = 1; i < lines.size(); i++)
		print(lines[i], widths);
	return missed;
}

// ---- The command line
// ----------------------------------------------------------------

// Takes our own options out, and puts our defaults before what the user asks for.
std::vector<char *> arguments(int argc, char **argv)
{
	static char repetitions[] = "--benchmark_repetitions=15";
	static char interleaving[] = "--benchmark_enable_random_interleaving=true";
	static char min_time[] = "--benchmark_min_time=0.04";
	static char once[] = "--benchmark_repetitions=1";
	static char shortly[] = "--benchmark_min_time=0.0001";
	std::vector<char *> user, all;

	for (int i = 1; i < argc; i++) {
		if (std::strcmp(argv[i], "--strict") == 0)
			options.strict = true;
		else if (std::strcmp(argv[i], "--smoke") == 0)
			options.smoke = true;
		else
			user.push_back(argv[i]);
	}
	all = { argv[0], repetitions, interleaving, min_time };
	if (options.smoke)
		all.insert(all.end(), { once, shortly });
	all.insert(all.end(), user.begin(), user.end());
	return all;
}

void help()
{
	std::printf(
	    "gale_bench [--strict] [--smoke] [--benchmark_filter=PATTERN] ...\n"
	    "\n"
	    "  --strict   exit status 1 if a row misses its bar\n"
	    "  --smoke    only see that everything runs; no figure is good\n"
	    "\n"
	    "The floors of the rows that match are measured too.  Further options\n"
	    "are those of Google Benchmark:\n\n");
	benchmark::PrintDefaultHelp();
}

} // namespace

// ---- bench.h
// -------------------------------------------------------------------------

void bench_add(const bench_row *row)
{
	rows.emplace_back();
	rows.back().is = *row;
}

void bench_add_figure(const bench_figure *figure)
{
	figures.push_back(*figure);
}

void bench_add_figures(const bench_figures *figures)
{
	sets.push_back(*figures);
}

uint64_t bench_batch(bench *b)
{
	return b->state->KeepRunningBatch(kBatch) ? kBatch : 0;
}

void bench_pause(bench *b)
{
	b->state->PauseTiming();
}

void bench_go_on(bench *b)
{
	b->state->ResumeTiming();
}

int bench_thread(const bench *b)
{
	return b->state->thread_index();
}

void *bench_arg(const bench *b)
{
	return b->row->arg;
}

void bench_count(bench *b, const char *what, uint64_t count)
{
	b->state->counters[what] = benchmark::Counter(
	    static_cast<double>(count), benchmark::Counter::kAvgIterations);
}

bool bench_is_smoke()
{
	return options.smoke;
}

void bench_fail(const char *what)
{
	std::fprintf(stderr, "gale_bench: %s: this does not work: %s\n", running, what);
	_exit(2); // other threads may be running rows
}

int bench_main(int argc, char **argv)
{
	std::vector<char *> args = arguments(argc, argv);
	int count = static_cast<int>(args.size());
	Collector collector;
	bool missed;

	benchmark::Initialize(&count, args.data(), help);
	if (benchmark::ReportUnrecognizedArguments(count, args.data()))
		return 2;
	Filter filter;
	measure_figures(filter); // before anything has been allocated and freed again
	choose(filter);
	for (Row &row : rows)
		if (row.wanted)
			register_row(&row);
	benchmark::RunSpecifiedBenchmarks(&collector, ".");
	missed = print_table();
	if (options.smoke)
		std::printf("A smoke run: none of this is a measurement.\n");
	return options.strict && missed ? 1 : 0;
}
