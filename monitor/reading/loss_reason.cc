#include "monitor/reading/loss_reason.h"

namespace vcpulse::reading {

const char* WhyLost(v1::LostRecords::Reason reason) {
  switch (reason) {
    case v1::LostRecords::REASON_SPOOL_FULL:
      return "the agent's spool was full";
    case v1::LostRecords::REASON_SPOOL_DAMAGED:
      return "the agent's spool was damaged";
    case v1::LostRecords::REASON_TOO_LARGE:
      return "a chunk was too large to be sent";
    case v1::LostRecords::REASON_AGENT_BUSY:
      return "the agent was too slow to send them";
    case v1::LostRecords::REASON_NOT_HELD:
      return "the agent had them no more";
    default:
      return "the agent did not say why";
  }
}

}  // namespace vcpulse::reading
