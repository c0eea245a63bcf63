#pragma once

#include <optional>

#include "absl/time/time.h"
#include "monitor/library/include/vcpulse.h"
#include "monitor/live/options.h"
#include "monitor/profile/profile.h"

struct vcpulse_options {
  vcpulse::live::Options live;
  bool has_output = false;                           // else a temporary file
  std::optional<vcpulse::profile::Profile> profile;  // nothing: the one of this CPU
  vcpulse_notice_callback on_notice = nullptr;
  void* notice_user = nullptr;
  vcpulse_record_callback on_record = nullptr;
  void* record_user = nullptr;
};
