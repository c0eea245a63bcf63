#pragma once

// The page itself: one HTML file with style, scripts and data in it.

#include <string>
#include <string_view>

#include "monitor/page/contents.h"

namespace vcpulse::page {

// `packed` is of packing.h. The page asks nothing of any network, but for a served one, which asks
// its server for finer bins. Nothing that a timeline holds stands in the HTML as text: names come
// from guests and harnesses, and the scripts put them on the page as text alone. `nonce`, letters
// and digits, is what the page's own scripts are told by from any other.
std::string RenderPage(std::string_view packed, std::string_view nonce, bool served);

// The page of these contents.
std::string RenderPage(const Contents& contents, bool served);

}  // namespace vcpulse::page
