#pragma once

#include <string>
#include <string_view>

#include "monitor/check/result.h"

namespace vcpulse::check {

// `text` on one line of Markdown as itself: every character that could mean something (also '|' of
// a table and '<' of HTML) gets a backslash. Pure.
std::string MarkdownText(std::string_view text);

// The result as GitHub's Markdown, for the step summary of a CI job: the verdict as heading, and
// a table per expectation. `file` is what a person calls the timeline. Pure.
std::string RenderMarkdown(const Result& result, std::string_view file);

}  // namespace vcpulse::check
