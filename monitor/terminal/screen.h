#pragma once

// monitor/terminal shows cells on a terminal and tells what a person does there: a thin shell
// around ncurses, which sends only what has changed. No state of the view, no timelines.

#include <pthread.h>
#include <termios.h>

#include <chrono>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "kvm/base/fd.h"
#include "monitor/top/cells.h"
#include "monitor/top/state.h"

namespace vcpulse::terminal {

// The terminal of this process's standard input and output. One thread, but for Wake. There is one
// at a time.
class Screen {
 public:
  // Signals of terminals (a new size, Ctrl-Z, going on) are read by Next: call this before any
  // thread begins, so that none takes them.
  static void HoldSignals();

  // Whether Open can succeed; changes nothing on the terminal. Errors: FailedPrecondition, in
  // words, where standard input or output is no terminal, or one whose cursor cannot be moved, or
  // whose TERM is not known.
  static absl::Status Check();
  // Takes the terminal. Errors: those of Check; also where it takes no output for a second.
  static absl::StatusOr<std::unique_ptr<Screen>> Open();
  // The terminal as it was before: by Release(), else with the object.
  ~Screen();
  void Release();
  // On a terminal that takes nothing: nothing is written to it any more, also not to standard
  // error, its modes are as before, and `drawing`, the thread that waits in a write, goes on. That
  // thread has called MayBeInterrupted. Any other thread.
  void GiveUp(pthread_t drawing);
  static void MayBeInterrupted();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  top::Size size() const;
  bool has_utf8() const { return has_utf8_; }
  void Show(const top::Cells& cells);

  struct Happened {
    std::optional<top::Event> event;
    bool terminal_is_gone = false;
  };
  // Waits until there is an event, Wake() is called or the time is over. Returns one event at a
  // time; none means that no more are waiting.
  Happened Next(std::chrono::milliseconds longest);
  // Ends a wait. Any thread.
  void Wake();

 private:
  struct Curses;

  Screen();

  std::optional<top::Event> ReadKey();
  std::optional<top::Event> TakeSignal();
  // The terminal as it was, until the process goes on. `whole_job`: all of its process group stops,
  // as a terminal does it by Ctrl-Z.
  void Suspend(bool whole_job);

  std::unique_ptr<Curses> curses_;
  termios before_{};  // the modes of the terminal
  Fd signals_;
  Fd wake_;
  bool has_utf8_ = false;
};

}  // namespace vcpulse::terminal
