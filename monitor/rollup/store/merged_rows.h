#pragma once

#include <string>
#include <string_view>

namespace vcpulse::rollup {

// The rows of one slice of time that two readings of its stream made, each without some records:
// of a window, VM, vCPU and epoch those of the reading with more ticks, or, at as many, with less
// time in gaps, else the older ones, which know how long what they begin with had lasted. Both are
// CSV as RowText writes it, whole; the columns are those of `newer`, those that `older` does not
// have are empty. In the order of Windows::Sink. What is no such text counts as empty.
std::string MergeRows(std::string_view older, std::string_view newer);

}  // namespace vcpulse::rollup
