#include "monitor/import/import_records.h"

#include <algorithm>
#include <vector>

#include "kvm/text.h"
#include "monitor/core/verdict_window.h"
#include "monitor/import/intervals.h"
#include "monitor/replay/recorded_settings.h"

namespace vcpulse::csv {
namespace {

bool Has(const FieldSet& fields, Field field) { return fields[static_cast<size_t>(field)]; }

v1::ResidencyMethod MethodOf(const FieldSet& columns, const ImportOptions& options) {
  if (options.tsc_hz && Has(columns, Field::kRefCycles)) return v1::RESIDENCY_METHOD_REF_CYCLES;
  if (!Has(columns, Field::kCycles)) {
    const bool timed = Has(columns, Field::kTimeEnabled) || Has(columns, Field::kTimeRunning) ||
                       Has(columns, Field::kRun);
    return timed ? v1::RESIDENCY_METHOD_TIME_ENABLED : v1::RESIDENCY_METHOD_UNSPECIFIED;
  }
  return options.max_hz ? v1::RESIDENCY_METHOD_MAX_FREQUENCY : v1::RESIDENCY_METHOD_HIGHEST_RATE;
}

}  // namespace

std::vector<Field> CountedFields(const FieldSet& present) {
  std::vector<Field> counted;
  for (size_t f = kFirstCount; f < kFirstCount + kCounts; ++f) {
    if (present[f]) counted.push_back(static_cast<Field>(f));
  }
  return counted;
}

v1::Session MakeSession(const CsvTable& table, const ImportOptions& options, int64_t interval_ns) {
  v1::Session session;
  session.set_stream_id(options.stream_id.data(), options.stream_id.size());
  session.set_tool_version(options.tool_version);
  session.set_interval_ns(static_cast<uint64_t>(interval_ns));
  session.set_verdict_window_ns(
      static_cast<uint64_t>(std::max(interval_ns, core::kShortestVerdict_ns)));
  session.set_residency_method(MethodOf(table.columns, options));
  session.set_residency_blind_spot(std::string(replay::BlindSpotOf(session.residency_method())));
  session.set_tsc_hz(options.tsc_hz.value_or(0));
  session.set_max_hz(options.max_hz.value_or(0));
  if (CountedFields(table.columns).empty()) {
    session.set_degraded_reason("the imported file counts nothing");
  }
  replay::SetClassifier(options.classifier, options.profile.values, options.profile.name, session);
  return session;
}

v1::VcpuSet MakeVcpuSet(const CsvTable& table, const std::string& vm, const FieldSet& present,
                        std::span<const uint32_t> vcpus, bool max_hz_known) {
  v1::VcpuSet set;
  set.mutable_instance()->set_name(vm);
  for (const uint32_t index : vcpus) {
    v1::Vcpu& vcpu = *set.add_vcpus();
    vcpu.set_index(index);
    vcpu.set_found_by("given");
    vcpu.set_proof("none");
  }
  for (const Field field : CountedFields(present)) set.add_events(std::string(EventName(field)));
  set.set_event_set(set.events().empty() ? "degraded" : "custom");
  for (const Field field : CountedFields(table.columns & ~present)) {
    v1::AbsentEvent& absent = *set.add_absent_events();
    absent.set_event(std::string(EventName(field)));
    absent.set_reason("its cells are empty in the imported file");
  }
  for (const std::string& note : Substitutions(present, max_hz_known)) set.add_notes(note);
  return set;
}

}  // namespace vcpulse::csv
