#!/usr/bin/env perl
# Prints the screen of a vt100 that has received the bytes on standard input: one line of UTF-8 text
# for each row. It reports control sequences that it does not know, and then the status is 1.
#
# usage: screen.pl ROWS COLUMNS
use strict;
use warnings;

my ($rows, $columns) = @ARGV;
my @cells = map { [(' ') x $columns] } 1 .. $rows;
my ($y, $x, $wrapping, $unknown) = (0, 0, 0, 0);
# of the region that scrolls
my ($top, $bottom) = (0, $rows - 1);
binmode STDIN;
my $bytes = do { local $/; <STDIN> } // '';

sub row_to { $y = $_[0] < 0 ? 0 : $_[0] >= $rows ? $rows - 1 : $_[0]; $wrapping = 0 }
sub column_to { $x = $_[0] < 0 ? 0 : $_[0] >= $columns ? $columns - 1 : $_[0]; $wrapping = 0 }
sub erase { my ($row, $from, $to) = @_; $cells[$row][$_] = ' ' for $from .. $to }

sub feed_line {
    if ($y != $bottom) { row_to($y + 1); return }
    splice @cells, $top, 1;
    splice @cells, $bottom, 0, [(' ') x $columns];
}

sub feed_back {
    if ($y != $top) { row_to($y - 1); return }
    splice @cells, $bottom, 1;
    splice @cells, $top, 0, [(' ') x $columns];
}

sub width_of {
    my $c = ord $_[0];
    return 0 if $_[0] =~ /\p{Mn}|\p{Cf}/;
    return 2 if $c >= 0x1100 && $_[0] =~ /\p{East_Asian_Width=W}|\p{East_Asian_Width=F}/;
    return 1;
}

sub put {
    my ($c) = @_;
    my $width = width_of($c);
    if ($width == 0) {
        my $at = $wrapping ? $x : $x - 1;
        $at-- while $at > 0 && $cells[$y][$at] eq '';
        $cells[$y][$at] .= $c if $at >= 0;
        return;
    }
    if ($wrapping || $x + $width > $columns) { $x = 0; $wrapping = 0; feed_line() }
    $cells[$y][$x] = $c;
    $cells[$y][$x + 1] = '' if $width == 2;
    if ($x + $width < $columns) { $x += $width } else { $x = $columns - 1; $wrapping = 1 }
}

sub command {
    my ($arguments, $verb) = @_;
    my @n = map { $_ || 0 } split /;/, $arguments;
    my $n = $n[0] || 1;
    if ($verb eq 'H' || $verb eq 'f') { row_to($n - 1); column_to(($n[1] || 1) - 1) }
    elsif ($verb eq 'A') { row_to($y - $n) }
    elsif ($verb eq 'B') { row_to($y + $n) }
    elsif ($verb eq 'C') { column_to($x + $n) }
    elsif ($verb eq 'D') { column_to($x - $n) }
    elsif ($verb eq 'K' && !$n[0]) { erase($y, $x, $columns - 1) }
    elsif ($verb eq 'K' && $n[0] == 1) { erase($y, 0, $x) }
    elsif ($verb eq 'J' && !$n[0]) {
        erase($y, $x, $columns - 1);
        erase($_, 0, $columns - 1) for $y + 1 .. $rows - 1;
    }
    elsif ($verb eq 'r') { ($top, $bottom) = ($n - 1, ($n[1] || $rows) - 1); row_to(0); column_to(0) }
    elsif ($verb =~ /[mhlg]/) { } # looks and modes
    else { warn "unknown: ESC [ $arguments $verb\n"; $unknown = 1 }
}

pos($bytes) = 0;
while (pos($bytes) < length $bytes) {
    if ($bytes =~ /\G\e\[([?0-9;]*)([A-Za-z])/gc) { command($1, $2) }
    elsif ($bytes =~ /\G\eM/gc) { feed_back() }
    elsif ($bytes =~ /\G\e[()]./gc || $bytes =~ /\G\e[=>78HD]/gc) { }
    elsif ($bytes =~ /\G\r/gc) { column_to(0) }
    elsif ($bytes =~ /\G\n/gc) { feed_line() }
    elsif ($bytes =~ /\G\x08/gc) { column_to($x - 1) }
    elsif ($bytes =~ /\G\t/gc) { column_to(8 * (1 + int($x / 8))) }
    elsif ($bytes =~ /\G[\x00\x0e\x0f]/gc) { }
    elsif ($bytes =~ /\G([\x20-\x7e]|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3})/gc) {
        my $c = $1;
        utf8::decode($c);
        if (ord($c) >= 0x80 && ord($c) < 0xa0) { warn "a control character\n"; $unknown = 1 }
        put($c);
    }
    else {
        $bytes =~ /\G(.)/gcs;
        warn sprintf("unknown: byte %02x\n", ord $1);
        $unknown = 1;
    }
}
binmode STDOUT, ':utf8';
print join('', @$_), "\n" for @cells;
exit $unknown;
