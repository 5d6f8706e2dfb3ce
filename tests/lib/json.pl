#!/usr/bin/env perl
# Evaluates expressions for json of tests/cli/cli.sh, so that a test need not start Perl for each of them.
#
# usage: json.pl FIFO PID     until the process PID has ended
# FIFO: an expression, a byte of 0, and a JSON text, which is $d. The value goes to FIFO.answer.
use strict;
use warnings;
use Errno;
use JSON::PP;
use POSIX ();

my ($fifo, $parent) = @ARGV;
my $json = JSON::PP->new->utf8;
$SIG{ALRM} = sub { exit unless kill 0, $parent; alarm 2 };
$SIG{PIPE} = 'IGNORE';
alarm 2;
# A reader of what the test writes waits for the end of all that have it open.
POSIX::close($_) for 3 .. 99;

sub value_of {
    my ($expression, $d) = ($_[0], $json->decode($_[1]));
    my $value = eval $expression;
    die $@ if $@;
    return $value // 'null';
}

sub opened {
    my ($mode, $name, $file) = @_;
    until (open $file, $mode, $name) { exit unless $!{EINTR} }
    return $file;
}

while (1) {
    local $/;
    my $question = readline opened('<', $fifo);
    # No test asks nothing: it was killed, and its folder is gone.
    exit unless length($question // '');
    my $value = eval { value_of(split /\0/, $question // '', 2) } // "no value: $@";
    utf8::encode($value);
    print {opened('>', "$fifo.answer")} $value;
}
