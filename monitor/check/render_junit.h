#pragma once

#include <string>
#include <string_view>

#include "monitor/check/result.h"

namespace vcpulse::check {

// `text` as XML character data or attribute value: the five characters that mean something become
// references. What XML 1.0 cannot hold even as a reference (most control characters, U+FFFE and
// U+FFFF, bytes that are no UTF-8) becomes '?', and a tab or line end a blank. Pure.
std::string XmlText(std::string_view text);

// The result as JUnit XML with one test suite: a test case per expectation and subject. FAIL is
// <failure>, INCONCLUSIVE <error>, SKIP <skipped>; times are the wall time that was judged, in
// seconds. The class name holds the phase, so that runs of several phases do not mix. Valid against
// Jenkins' schema (tests/data/junit). `file` is what a person calls the timeline. Pure.
std::string RenderJunit(const Result& result, std::string_view file);

// JUnit XML with one test case that is an <error>: nothing was judged, for this reason. Pure.
std::string RenderJunitError(std::string_view why);

}  // namespace vcpulse::check
