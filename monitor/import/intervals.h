#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "monitor/import/table.h"

namespace vcpulse::importing {

// What one row covers.
struct Interval {
  size_t row = 0;  // in Table::rows
  uint32_t vm = 0;
  uint32_t vcpu = 0;
  uint64_t instant = 0;  // the same for those that were sampled together: a tick, or end_ns
  int64_t begin_ns = 0;
  int64_t end_ns = 0;  // t_ns
  uint64_t time_enabled_ns = 0;
  uint64_t time_running_ns = 0;

  int64_t Length_ns() const { return end_ns - begin_ns; }
};

// The median of any number of lengths in bounded memory: exact up to 65,536 different ones, then to
// a unit that doubles as long as there are more.
class Lengths {
 public:
  void Add(int64_t length_ns);
  int64_t Median_ns() const;  // 0 where there is none

 private:
  std::map<int64_t, uint64_t> counts_;
  uint64_t count_ = 0;
  int64_t unit_ns_ = 1;
};

// What must be known of all intervals before the first of them can become a tick.
class Survey {
 public:
  // Takes released intervals, in order.
  void Add(const Table& table, const std::vector<Interval>& intervals);

  uint64_t found = 0;  // intervals
  uint64_t says_nothing =
      0;  // thereof of rows with neither a count nor a time; not in what follows
  std::set<uint32_t> vms;
  Lengths lengths;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  std::optional<double> highest_rate;  // of cycles, Hz
  // Rows with counts that no CPU makes, and the number of the first one.
  uint64_t impossible = 0;
  uint64_t first_impossible = 0;

  // Whether all rows have a tick that agrees with the order of time: each tick's last row ends
  // before the first of the next. Its rows are one instant then, else those that end together.
  bool by_tick() const { return ticks_agree_ && found > 0; }

 private:
  void LookAtTick(const Row& row, const Interval& interval);
  void LookAtCounts(const Table& table, const Row& row, const Interval& interval);

  bool ticks_agree_ = true;
  uint64_t tick_ = 0;
  std::set<std::pair<uint32_t, uint32_t>> seen_;  // (vm, vcpu) in this tick
};

// Nothing in the row was measured over its interval: a state is that of an instant, and a wait says
// nothing of what ran.
bool SaysNothing(const Table& table, const Row& row);

// Makes released intervals ready to become ticks: by (instant, vm, vcpu), and with their times,
// where absent ones are substituted as Substitutions() says.
void Prepare(const Table& table, const Survey& survey, std::optional<double> max_hz,
             std::vector<Interval>& intervals);

// What stands for the times that rows with these cells lack, for people.
std::vector<std::string> Substitutions(const FieldSet& present, bool cycles_counted,
                                       bool max_hz_known);

}  // namespace vcpulse::importing
