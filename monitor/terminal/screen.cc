#include "monitor/terminal/screen.h"

#define NCURSES_NOMACROS  // move() and others
#include <curses.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

// What term.h defines as macros, and others use as names.
#undef lines
#undef columns

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"
#include "monitor/terminal/terminfo_entries.h"
#include "monitor/top/palette.h"

namespace vcpulse::terminal {
namespace {

constexpr std::array kSignals = {SIGWINCH, SIGTSTP, SIGCONT};
constexpr int kInterrupt = SIGUSR1;  // of a write
constexpr int kEscapeDelay_ms = 25;  // what follows an escape sooner belongs to one key

constexpr int kLongestStopped_ms = 1000;

// Whether the terminal takes output: one that Ctrl-S has stopped, or that nobody reads, would hold
// ncurses up for ever, signals or not.
bool TakesOutput() {
  pollfd terminal{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  return poll(&terminal, 1, kLongestStopped_ms) == 1 && (terminal.revents & POLLOUT) != 0;
}

// ncurses would end the process on signals that others wait for.
class KeptHandlers {
 public:
  KeptHandlers() {
    for (size_t i = 0; i < kKept.size(); ++i) sigaction(kKept[i], nullptr, &before_[i]);
  }
  ~KeptHandlers() {
    for (size_t i = 0; i < kKept.size(); ++i) sigaction(kKept[i], &before_[i], nullptr);
  }
  KeptHandlers(const KeptHandlers&) = delete;
  KeptHandlers& operator=(const KeptHandlers&) = delete;

 private:
  static constexpr std::array kKept = {SIGINT, SIGTERM, SIGTSTP, SIGWINCH};
  std::array<struct sigaction, kKept.size()> before_{};
};

sigset_t TerminalSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kSignals) sigaddset(&set, signal);
  return set;
}

absl::Status Refused(const std::string& why) {
  return absl::FailedPreconditionError(
      absl::StrCat(why, "; `vcpulse tail`, `replay` and `report` print plain text"));
}

// Whether people here write UTF-8, whatever locales are installed.
bool SetLocale() {
  const char* set = std::setlocale(LC_CTYPE, "");
  if (set != nullptr && MB_CUR_MAX > 1) return true;
  std::string wanted;
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    wanted = value;
    break;
  }
  const bool wants_utf8 =
      absl::EndsWithIgnoreCase(wanted, "utf-8") || absl::EndsWithIgnoreCase(wanted, "utf8");
  return wants_utf8 && std::setlocale(LC_CTYPE, "C.UTF-8") != nullptr && MB_CUR_MAX > 1;
}

// The terminfo of `term` that is compiled in; of a terminal that is called after a known one
// ("xterm-kitty", "screen.xterm-256color"), that one's. Null for any other.
const TerminfoEntry* CompiledIn(std::string_view term) {
  const auto entries = TerminfoEntries();
  const auto named = [&](std::string_view name) {
    const auto found = std::ranges::find(entries, name, &TerminfoEntry::name);
    return found == entries.end() ? nullptr : &*found;
  };
  if (const auto* entry = named(term)) return entry;
  return named(term.substr(0, term.find_first_of("-.")));
}

// What `setupterm` finds for TERM, or else what is compiled in: then TERM and TERMINFO say so.
absl::Status FindTerminal() {
  const char* given = std::getenv("TERM");
  const std::string term = given == nullptr ? "" : given;
  if (term.empty()) return Refused("TERM is not set, so it is not known how to draw here");
  int error = 0;
  if (setupterm(term.c_str(), STDOUT_FILENO, &error) != OK) {
    const TerminfoEntry* entry = CompiledIn(term);
    if (entry == nullptr) {
      return Refused(absl::StrCat("the terminal ", Quoted(term),
                                  " is not known here (no terminfo): try TERM=xterm-256color"));
    }
    setenv("TERM", std::string(entry->name).c_str(), 1);
    setenv("TERMINFO", std::string(entry->terminfo).c_str(), 1);
    if (setupterm(entry->name.data(), STDOUT_FILENO, &error) != OK) {
      return Refused(absl::StrCat("the terminal ", Quoted(term), " is not known here"));
    }
  }
  const bool can_move = cursor_address != nullptr;
  del_curterm(cur_term);
  if (can_move) return absl::OkStatus();
  return Refused(absl::StrCat("the terminal ", Quoted(term), " cannot move its cursor"));
}

short PairOf(top::Ink ink) { return static_cast<short>(static_cast<int>(ink) + 1); }

// The number of an ink's colour on this terminal.
int ColourNumber(const top::InkColour& colour) {
  if (tigetflag("RGB") > 0) {
    const top::Rgb rgb = top::RgbOf256(colour.of_256);
    return rgb.red << 16 | rgb.green << 8 | rgb.blue;
  }
  constexpr int kPalette = 256;
  return COLORS >= kPalette ? colour.of_256 : colour.of_8;
}

std::string KeyName(int code) {
  switch (code) {
    case KEY_UP:
      return "up";
    case KEY_DOWN:
      return "down";
    case KEY_LEFT:
      return "left";
    case KEY_RIGHT:
      return "right";
    case KEY_HOME:
      return "home";
    case KEY_END:
      return "end";
    case KEY_PPAGE:
      return "pageup";
    case KEY_NPAGE:
      return "pagedown";
    case KEY_BACKSPACE:
      return "backspace";
    case KEY_DC:
      return "delete";
    case KEY_ENTER:
      return "enter";
    default:
      return "";
  }
}

// Empty for what is no key.
std::string CharacterName(wint_t character) {
  switch (character) {
    case ' ':
      return "space";
    case '\t':
      return "tab";
    case '\n':
    case '\r':
      return "enter";
    case 0x1b:
      return "escape";
    case 0x08:
    case 0x7f:
      return "backspace";
    default:
      break;
  }
  if (character >= 1 && character <= 26) {
    return absl::StrCat("ctrl-", std::string(1, static_cast<char>('a' + character - 1)));
  }
  if (character < ' ') return "";
  std::array<char, MB_LEN_MAX> bytes{};
  const int length = std::wctomb(bytes.data(), static_cast<wchar_t>(character));
  return length > 0 ? std::string(bytes.data(), static_cast<size_t>(length)) : "";
}

}  // namespace

struct Screen::Curses {
  SCREEN* screen = nullptr;
  bool has_colours = false;

  attr_t AttributesOf(const top::Cell& cell) const {
    attr_t attributes = A_NORMAL;
    if (cell.reversed) attributes |= A_REVERSE;
    if (cell.bold) attributes |= A_BOLD;
    if (top::ColourOf(cell.ink).is_dim && !cell.reversed) attributes |= A_DIM;
    return attributes;
  }
};

Screen::Screen() : curses_(std::make_unique<Curses>()) {}

void Screen::HoldSignals() {
  const sigset_t set = TerminalSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

absl::Status Screen::Check() {
  if (isatty(STDIN_FILENO) != 1 || isatty(STDOUT_FILENO) != 1) {
    return Refused("standard input and output must be a terminal");
  }
  return FindTerminal();
}

absl::StatusOr<std::unique_ptr<Screen>> Screen::Open() {
  if (absl::Status status = Check(); !status.ok()) return status;
  std::unique_ptr<Screen> screen(new Screen());
  screen->has_utf8_ = SetLocale();
  const sigset_t set = TerminalSignals();
  screen->signals_ = Fd(signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  screen->wake_ = Fd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!screen->signals_.valid() || !screen->wake_.valid()) {
    return absl::ErrnoToStatus(errno, "cannot wait for the terminal");
  }
  if (!TakesOutput()) return Refused("the terminal takes no output (Ctrl-Q lets it go on)");
  tcgetattr(STDIN_FILENO, &screen->before_);
  Curses& curses = *screen->curses_;
  {
    const KeptHandlers kept;
    set_escdelay(kEscapeDelay_ms);
    curses.screen = newterm(nullptr, stdout, stdin);
  }
  if (curses.screen == nullptr) return Refused("the terminal cannot be used");
  raw();
  noecho();
  nonl();
  keypad(stdscr, TRUE);
  nodelay(stdscr, TRUE);
  curs_set(0);
  mousemask(BUTTON1_PRESSED | BUTTON4_PRESSED | BUTTON5_PRESSED, nullptr);
  mouseinterval(0);
  const char* no_colour = std::getenv("NO_COLOR");
  const bool wants_colours = no_colour == nullptr || *no_colour == '\0';
  if (wants_colours && has_colors() && start_color() == OK) {
    use_default_colors();
    curses.has_colours = true;
    for (int i = 0; i < static_cast<int>(top::Ink::kEnd); ++i) {
      const auto ink = static_cast<top::Ink>(i);
      const top::InkColour& colour = top::ColourOf(ink);
      init_extended_pair(PairOf(ink), colour.is_default ? -1 : ColourNumber(colour), -1);
    }
  }
  return screen;
}

Screen::~Screen() { Release(); }

void Screen::Release() {
  if (curses_->screen == nullptr) return;
  endwin();
  delscreen(curses_->screen);
  curses_->screen = nullptr;
}

void Screen::MayBeInterrupted() {
  sigset_t interrupt;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, kInterrupt);
  pthread_sigmask(SIG_UNBLOCK, &interrupt, nullptr);
}

void Screen::GiveUp(pthread_t drawing) {
  struct sigaction action{};
  action.sa_handler = [](int) {};  // but a write ends
  sigaction(kInterrupt, &action, nullptr);
  const Fd nowhere(open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (nowhere.valid()) {
    dup2(nowhere.get(), STDOUT_FILENO);
    if (isatty(STDERR_FILENO) == 1) dup2(nowhere.get(), STDERR_FILENO);
  }
  tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  pthread_kill(drawing, kInterrupt);
}

top::Size Screen::size() const {
  return {.columns = static_cast<size_t>(std::max(getmaxx(stdscr), 0)),
          .rows = static_cast<size_t>(std::max(getmaxy(stdscr), 0))};
}

void Screen::Show(const top::Cells& cells) {
  erase();
  const top::Size all = cells.size();
  for (size_t row = 0; row < all.rows; ++row) {
    move(static_cast<int>(row), 0);
    for (size_t begin = 0; begin < all.columns;) {
      const top::Cell& first = cells.At(row, begin);
      std::string run;
      size_t end = begin;
      for (; end < all.columns; ++end) {
        const top::Cell& cell = cells.At(row, end);
        if (cell.ink != first.ink || cell.reversed != first.reversed || cell.bold != first.bold) {
          break;
        }
        run += has_utf8_ || cell.glyph.size() == 1 ? cell.glyph : "?";
      }
      attr_set(curses_->AttributesOf(first),
               curses_->has_colours ? PairOf(first.ink) : static_cast<short>(0), nullptr);
      addstr(run.c_str());
      begin = end;
    }
  }
  attr_set(A_NORMAL, 0, nullptr);
  refresh();
}

void Screen::Wake() {
  const uint64_t one = 1;
  // Where it is full, the wait has ended already.
  (void)!write(wake_.get(), &one, sizeof one);
}

void Screen::Suspend(bool whole_job) {
  endwin();
  if (whole_job) {
    // Held back in every thread but, for a moment, this one.
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    pthread_sigmask(SIG_UNBLOCK, &stop, nullptr);
    kill(0, SIGTSTP);
    pthread_sigmask(SIG_BLOCK, &stop, nullptr);
  } else {
    kill(getpid(), SIGSTOP);
  }
  clearok(curscr, TRUE);
}

std::optional<top::Event> Screen::TakeSignal() {
  signalfd_siginfo info{};
  if (read(signals_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  if (info.ssi_signo == SIGTSTP) Suspend(/*whole_job=*/false);
  winsize now{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &now) == 0 && now.ws_row > 0 && now.ws_col > 0) {
    resizeterm(now.ws_row, now.ws_col);
  }
  // Others may have written here meanwhile.
  if (info.ssi_signo != SIGWINCH) clearok(curscr, TRUE);
  return top::ResizeEvent{.size = size()};
}

std::optional<top::Event> Screen::ReadKey() {
  wint_t character = 0;
  const int got = get_wch(&character);
  if (got == ERR) return std::nullopt;
  if (got == KEY_CODE_YES) {
    if (character == KEY_MOUSE) {
      MEVENT event{};
      if (getmouse(&event) != OK) return top::KeyEvent{};
      if ((event.bstate & BUTTON4_PRESSED) != 0) return top::WheelEvent{.up = true};
      if ((event.bstate & BUTTON5_PRESSED) != 0) return top::WheelEvent{.up = false};
      if ((event.bstate & BUTTON1_PRESSED) == 0) return top::KeyEvent{};
      return top::ClickEvent{.row = static_cast<size_t>(std::max(event.y, 0)),
                             .column = static_cast<size_t>(std::max(event.x, 0))};
    }
    return top::KeyEvent{.key = KeyName(static_cast<int>(character))};
  }
  std::string key = CharacterName(character);
  if (key == "ctrl-z") {
    Suspend(/*whole_job=*/true);
    return top::ResizeEvent{.size = size()};
  }
  if (key == "ctrl-l") {
    clearok(curscr, TRUE);
    return top::ResizeEvent{.size = size()};
  }
  return top::KeyEvent{.key = std::move(key)};
}

Screen::Happened Screen::Next(std::chrono::milliseconds longest) {
  // What ncurses has read ahead is seen by no poll.
  while (auto event = ReadKey()) {
    const auto* key = std::get_if<top::KeyEvent>(&*event);
    if (key == nullptr || !key->key.empty()) return {.event = std::move(event)};
  }
  std::array<pollfd, 3> polled = {{{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0},
                                   {.fd = signals_.get(), .events = POLLIN, .revents = 0},
                                   {.fd = wake_.get(), .events = POLLIN, .revents = 0}}};
  if (poll(polled.data(), polled.size(), static_cast<int>(longest.count())) <= 0) return {};
  if (polled[1].revents != 0) {
    if (auto event = TakeSignal()) return {.event = std::move(event)};
  }
  if (polled[2].revents != 0) {
    uint64_t count = 0;
    (void)!read(wake_.get(), &count, sizeof count);
  }
  if ((polled[0].revents & POLLIN) != 0) {
    auto event = ReadKey();
    if (event) {
      const auto* key = std::get_if<top::KeyEvent>(&*event);
      if (key != nullptr && key->key.empty()) return {};
      return {.event = std::move(event)};
    }
    // Ready to be read, and there is nothing: its end.
    int waiting = 0;
    const bool at_end = ioctl(STDIN_FILENO, FIONREAD, &waiting) != 0 || waiting == 0;
    return {.event = std::nullopt, .terminal_is_gone = at_end};
  }
  return {.event = std::nullopt,
          .terminal_is_gone = (polled[0].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0};
}

}  // namespace vcpulse::terminal
