#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "kvm/base/clock.h"
#include "kvm/base/text.h"
#include "monitor/check/render.h"
#include "monitor/check/words.h"
#include "monitor/timeline/entry.h"

namespace vcpulse::check {
namespace {

// U+FFFE and U+FFFF are UTF-8, and still no characters of XML 1.0.
constexpr std::string_view kNoCharacterPrefix = "\xef\xbf";

std::string Attribute(const char* name, std::string_view value) {
  return absl::StrCat(" ", name, "=\"", XmlText(value), "\"");
}

std::string InSeconds(int64_t ns) { return absl::StrFormat("%.3f", ToSeconds(ns)); }

// The expectations on one time.
std::vector<const Judged*> JudgedOn(const JudgedTime& time, const Result& result) {
  std::vector<const Judged*> all;
  for (const Judged& judged : result.judged) {
    if ((judged.time ? *judged.time : result) == time) all.push_back(&judged);
  }
  return all;
}

Counts CountFindings(const std::vector<const Judged*>& all) {
  Counts counts;
  for (const Judged* judged : all) {
    for (const Finding& finding : judged->findings) counts.Add(finding.outcome);
  }
  return counts;
}

// "vcpulse.check", and the phase as a class: dots would make packages of it.
std::string ClassName(const JudgedTime& time) {
  if (!time.phase) return "vcpulse.check";
  std::string phase = *time.phase;
  std::ranges::replace(phase, '.', '_');
  return "vcpulse.check." + phase;
}

std::string Because(const char* element, const Expectation& expectation, const Finding& finding) {
  const std::string text = FindingText(expectation, finding);
  return absl::StrCat("      <", element, Attribute("message", text),
                      Attribute("type", ToString(finding.outcome)), ">",
                      XmlText(finding.subject + ": " + text), "</", element, ">\n");
}

std::string TestCase(const JudgedTime& time, const Expectation& expectation,
                     const Finding& finding) {
  const std::string head =
      absl::StrCat("    <testcase",
                   Attribute("name", absl::StrCat(expectation.text, " [", finding.subject, "]")),
                   Attribute("classname", ClassName(time)),
                   Attribute("time", InSeconds(finding.judged_ns)), ">\n");
  const std::string tail = "    </testcase>\n";
  switch (finding.outcome) {
    case Outcome::kFail:
      return head + Because("failure", expectation, finding) + tail;
    case Outcome::kInconclusive:
      return head + Because("error", expectation, finding) + tail;
    case Outcome::kSkip:
      // Its oldest schema knows no attribute of <skipped>; readers take the text where there is
      // none.
      return head + "      <skipped>" + XmlText(finding.reason) + "</skipped>\n" + tail;
    case Outcome::kPass:
      break;
  }
  return absl::StrCat(head, "      <system-out>", XmlText(FindingText(expectation, finding)),
                      "</system-out>\n", tail);
}

std::string Property(const char* name, std::string_view value) {
  return absl::StrCat("      <property", Attribute("name", name), Attribute("value", value),
                      "/>\n");
}

// `said` is what the suite prints.
std::string Suite(const Result& result, const JudgedTime& time, std::string_view file,
                  const std::string& said) {
  const std::vector<const Judged*> all = JudgedOn(time, result);
  const Counts counts = CountFindings(all);
  std::string out = absl::StrCat(
      "  <testsuite",
      Attribute("name", time.phase ? "vcpulse check: phase " + *time.phase : "vcpulse check"),
      Attribute("tests", absl::StrCat(counts.all)),
      Attribute("failures", absl::StrCat(counts.failed)),
      Attribute("errors", absl::StrCat(counts.inconclusive)),
      Attribute("skipped", absl::StrCat(counts.skipped)),
      Attribute("time", InSeconds(time.judged_ns)));
  if (result.start_realtime_ns) {
    absl::StrAppend(&out, Attribute("timestamp",
                                    absl::FormatTime("%Y-%m-%dT%H:%M:%S",
                                                     absl::FromUnixNanos(*result.start_realtime_ns),
                                                     absl::UTCTimeZone())));
  }
  if (!result.host_name.empty()) absl::StrAppend(&out, Attribute("hostname", result.host_name));
  absl::StrAppend(&out, ">\n    <properties>\n", Property("timeline", file),
                  Property("judged", PartText(time, result.duration_ns)));
  if (!result.degraded.empty()) out += Property("degraded", result.degraded);
  if (result.baseline) out += Property("baseline", *result.baseline);
  out += "    </properties>\n";
  for (const Judged* judged : all) {
    for (const Finding& finding : judged->findings) {
      out += TestCase(time, judged->expectation, finding);
    }
  }
  return absl::StrCat(out, "    <system-out>", said, "</system-out>\n  </testsuite>\n");
}

}  // namespace

std::string XmlText(std::string_view text) {
  std::string utf8(text);
  MakeUtf8(&utf8);
  std::string out;
  for (size_t i = 0; i < utf8.size(); ++i) {
    const char c = utf8[i];
    if (utf8.compare(i, 2, kNoCharacterPrefix) == 0 && utf8[i + 2] >= '\xbe') {
      out += '?';
      i += 2;
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (c == '\'') {
      out += "&apos;";
    } else if (c == '\t' || c == '\n' || c == '\r') {
      out += ' ';
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += byte < 0x20 ? '?' : c;
    }
  }
  return out;
}

std::string RenderJunit(const Result& result, std::string_view file) {
  std::vector<const Judged*> all;
  all.reserve(result.judged.size());
  for (const Judged& judged : result.judged) all.push_back(&judged);
  const Counts counts = CountFindings(all);
  std::string said;
  for (const std::string& note : result.notes) absl::StrAppend(&said, XmlText(note), "\n");
  said += XmlText(VerdictText(result));
  std::string suites;
  int64_t judged_ns = 0;
  for (const JudgedTime& time : TimesOf(result)) {
    suites += Suite(result, time, file, suites.empty() ? said : "");
    judged_ns += time.judged_ns;
  }
  return absl::StrCat("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites",
                      Attribute("name", "vcpulse check"),
                      Attribute("tests", absl::StrCat(counts.all)),
                      Attribute("failures", absl::StrCat(counts.failed)),
                      Attribute("errors", absl::StrCat(counts.inconclusive)),
                      Attribute("time", InSeconds(judged_ns)), ">\n", suites, "</testsuites>\n");
}

std::string RenderJunitError(std::string_view why) {
  const std::string counts =
      absl::StrCat(Attribute("name", "vcpulse check"), Attribute("tests", "1"),
                   Attribute("failures", "0"), Attribute("errors", "1"));
  return absl::StrCat(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites", counts, ">\n  <testsuite", counts,
      Attribute("skipped", "0"), ">\n    <testcase", Attribute("name", "the timeline can be read"),
      Attribute("classname", "vcpulse.check"), Attribute("time", "0.000"), ">\n      <error",
      Attribute("message", why), Attribute("type", "INCONCLUSIVE"), ">", XmlText(why),
      "</error>\n    </testcase>\n  </testsuite>\n</testsuites>\n");
}

}  // namespace vcpulse::check
