#!/usr/bin/env perl
# Every order of the steps of two or three sessions, made of our own SQL files, and judged by invariants.
#
# usage: sessions.pl spec FOLDER SIZE STEPS PARTS ISOLATION
#            writes specifications for PostgreSQL's isolationtester, one for each beginning: each PARTS-th order of
#            SIZE sessions with at most STEPS steps together
#        sessions.pl judge FOLDER
#            reads what isolationtester printed for each of them, in a file with .log for .spec
#
# judge prints "N orders, N grants, N guards, N waits, N errors", and before that a line for each violation of:
#   - two never hold an exclusive lock at once;
#   - each token is above all that were granted before it, and above each floor that was raised before it;
#   - a guard that says OK, in a transaction that commits, means that no grant and no break came in between;
#   - a holder that was not broken, taken over or swept can release and renew;
#   - a sweep removes expired grants only, and what stands in the table at the end is held by a session.
use strict;
use warnings;

# What each session does in turn. An upper-case step opens or ends a transaction of its own. A step's second time in
# a script has a number.
my %scripts = (
    lock    => [qw(acquire release)],
    again   => [qw(acquire renew)],
    twice   => [qw(BEGIN acquire COMMIT acquire2)],
    guard   => [qw(BEGIN guard COMMIT)],
    inside  => [qw(BEGIN acquire COMMIT)],
    leave   => [qw(BEGIN guard release COMMIT)],
    keep    => [qw(renew release)],
    break   => [qw(break)],
    raise   => [qw(raise)],
    sweep   => [qw(sweep fold)],
    wait    => [qw(enqueue acquire)],
);
# How the lock stands at the beginning. Session a has the grant, where there is one.
my @beginnings = qw(new free held expired);
my %needs_grant = map { $_ => 1 } qw(guard leave keep);

sub read_sql {
    my ($step) = @_;
    my ($path) = grep { -e } glob "sql/postgres/$step.sql sql/postgres/*/$step.sql";
    open my $file, "<", $path // die("no $step.sql") or die "$path: $!";
    my @lines = map { s/\s+$//r =~ s/^\s+/ /r } grep { !/^--/ && /\S/ } <$file>;
    return join ' ', @lines;
}

my %text; # of each step, and its parameters in the order of their numbers
my $clock = read_sql('clock');
for my $step (qw(acquire release renew guard break raise sweep fold enqueue)) {
    my ($sql, @names, %number) = (read_sql($step));
    $sql =~ s/\{clock\}/$clock/g;
    $sql =~ s/\{(\w+)\}/'$' . ($number{$1} ||= push @names, $1)/ge;
    $text{$step} = { sql => $sql =~ s{;$}{}r, names => \@names };
}

sub arguments {
    my ($step, $session, $request) = @_;
    my ($token, $ticket) =
        map { "coalesce(nullif(current_setting('rl.$_', true), ''), '0')::bigint" } qw(token ticket);
    my %value = (
        name => "'n'", permits => 0, owner => "'$session'", request => $request, ttl => 60000000,
        host => "'h'", pid => 1, program => "'p'", note => "''", ticket => $ticket, unfair => 'false',
        slot => $step eq 'sweep' ? -1 : 0, token => $step eq 'break' ? 'rl_newest()' : $token,
        by => 1000, idle => 0, limit => 100, dry => 'false', older => 0, after => "''",
        lease => 60000000, wakeup => "''", joins => 'false',
    );
    return join ', ', map { $value{$_} // die "$step.sql: nothing is known of its parameter '$_'" } @{ $text{$step}{names} };
}

sub step_sql {
    my ($name, $session, $isolation) = @_;
    my ($step, $time) = $name =~ /^([A-Za-z]+)(\d?)$/;
    return "BEGIN ISOLATION LEVEL $isolation;" if $step eq 'BEGIN';
    return 'COMMIT;' if $step eq 'COMMIT';
    # A waiter's ticket and its grant are of one request.
    my $sql = "EXECUTE $step(" . arguments($step, $session, 10 * ord($session) + ($time || 1)) . ');';
    # Tokens are raised at this level only: a snapshot would hide new names.
    $sql = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; $sql" if $step eq 'raise';
    if ($step eq 'acquire') {
        $sql .= " SELECT set_config('rl.token', l.token::text, false) FROM rowlock_locks l"
              . " WHERE l.name = 'n' AND l.owner = '$session';";
    } elsif ($step eq 'enqueue') {
        $sql .= " SELECT set_config('rl.ticket', w.ticket::text, false) FROM rowlock_waiters w"
              . " WHERE w.name = 'n' AND w.owner = '$session';";
    }
    return $sql;
}

# Statements are parsed and planned once for all orders.
sub session_sql {
    my ($session, $isolation, $beginning) = @_;
    my @setup = (
        'SET client_min_messages = warning;', "SET lock_timeout = '60ms';", "SET plan_cache_mode = force_generic_plan;",
        "SET default_transaction_isolation = '$isolation';", "SET rl.token = '';", "SET rl.ticket = '';",
        'DO $do$ BEGIN IF NOT EXISTS (SELECT FROM pg_prepared_statements) THEN',
        (map { "EXECUTE \$sql\$PREPARE $_ AS $text{$_}{sql}\$sql\$;" } sort keys %text), 'END IF; END $do$;'
    );
    if ($session eq 'a' && $beginning =~ /held|expired/) {
        push @setup, step_sql('acquire9', 'a', $isolation);
        push @setup, 'UPDATE rowlock_locks SET expires = 1;' if $beginning eq 'expired';
    }
    my %step = map { $_ => 1 } map { @$_ } values %scripts;
    return "session $session\nsetup { @setup }\n",
        map { "step ${session}_$_ { " . step_sql($_, $session, $isolation) . " }\n" } sort keys %step;
}

sub specification {
    my ($size, $isolation, $beginning, @orders) = @_;
    my $out = "setup {\n"
        . " DELETE FROM rowlock_locks; DELETE FROM rowlock_tokens; DELETE FROM rowlock_waiters;\n"
        . " UPDATE rowlock_meta SET token_floor = 0;\n";
    $out .= " INSERT INTO rowlock_tokens (name, token, granted) VALUES ('n', 5, 1);\n" if $beginning ne 'new';
    $out .= "}\nteardown { SELECT 'final', l.owner, l.token FROM rowlock_locks l"
          . " WHERE l.expires > 1; }\n";
    return join '', $out, (map { session_sql($_, $isolation, $beginning) } ('a' .. 'c')[0 .. $size - 1]),
        map { "permutation $_\n" } @orders;
}

# Each order in which these lists can be merged.
sub merged {
    my @lists = grep { @$_ } @_;
    return '' unless @lists;
    return map {
        my ($first, @rest) = @{ $lists[$_] };
        my @others = @lists;
        $others[$_] = \@rest;
        map { "$first $_" } merged(@others);
    } 0 .. $#lists;
}

# All ways to choose SIZE scripts, in their order where that makes a difference: session a begins with the grant.
sub choices {
    my ($size) = @_;
    my @all = sort keys %scripts;
    my @chosen = map { [$_] } @all;
    for (2 .. $size) {
        @chosen = map { my $head = $_; map { [@$head, $_] } @all } @chosen;
    }
    return grep { my @rest = @$_[1 .. $#$_]; "@rest" eq join(' ', sort @rest) } @chosen;
}

# Sessions without a grant have nothing to guard or to keep, and which of them comes first makes no difference.
sub makes_sense {
    my ($beginning, $first, @rest) = @_;
    return 0 if grep { $needs_grant{$_} } @rest;
    return 1 if $beginning =~ /held|expired/;
    return !$needs_grant{$first} && $first le $rest[0];
}

sub write_specifications {
    my ($folder, $size, $steps, $parts, $isolation) = @_;
    my $n = 0;
    for my $beginning (@beginnings) {
        my @orders;
        for my $names (grep { makes_sense($beginning, @$_) } choices($size)) {
            next if grep({ $_ } map { @{ $scripts{$_} } } @$names) > $steps;
            my $session = 'a';
            my @lists = map { my $prefix = $session++ . '_'; [map { $prefix . $_ } @{ $scripts{$_} }] } @$names;
            push @orders, grep { $n++ % $parts == 0 } merged(@lists);
        }
        open my $file, '>', "$folder/$beginning, $size, $isolation.spec" or die "$folder: $!";
        print $file specification($size, $isolation, $beginning, @orders);
    }
}

# --- the judge

my (%holder, %failed, %inside, %pending, %guarded, %crossed, $highest, $floor, @wrong, %count);

# Something that a guard keeps out has become visible: which transactions with a guard are open meanwhile?
sub cross {
    my ($by) = @_;
    $crossed{$_} = 1 for grep { $_ ne $by } keys %guarded;
}

sub grant {
    my ($session, $token) = @_;
    $count{grants}++;
    for my $other (grep { $_ ne $session } keys %holder) {
        push @wrong, "$session was granted the lock while $other held it" unless $holder{$other}{expired};
    }
    push @wrong, "token $token after $highest" if $token <= $highest;
    push @wrong, "token $token below the raised floor $floor" if $token <= $floor;
    $highest = $token;
    %holder = ($session => { token => $token });
    cross($session);
}

# One step has ended: what it answered in its first row, if it had one.
sub step_done {
    my ($session, $step, $error, @cells) = @_;
    if ($error) {
        $failed{$session} = 1 if $inside{$session};
        return;
    }
    if ($step eq 'BEGIN') {
        $inside{$session} = 1;
    } elsif ($step eq 'COMMIT') {
        commit($session);
    } elsif ($step eq 'acquire') {
        return unless @cells && $cells[0] =~ /^\d+$/;
        if ($inside{$session}) { $pending{$session}{grant} = $cells[0] } else { grant($session, $cells[0]) }
    } elsif ($step eq 'release') {
        release($session, scalar @cells);
    } elsif ($step eq 'renew') {
        renew($session, scalar @cells);
    } elsif ($step eq 'guard') {
        $guarded{$session} = 1 if @cells && $cells[1] eq 't';
        $count{guards}++ if $guarded{$session};
    } elsif ($step eq 'break') {
        broken($cells[3], $session) if @cells;
    } elsif ($step eq 'raise') {
        $floor = $highest = $cells[0] if $cells[0] > $highest;
        cross($session);
    } elsif ($step eq 'sweep') {
        return unless @cells;
        my $held = $holder{ $cells[3] };
        push @wrong, "the sweep removed the live grant of $cells[3]" if $held && !$held->{expired};
        delete $holder{ $cells[3] };
    }
}

sub release {
    my ($session, $found) = @_;
    my $held = $holder{$session};
    push @wrong, "$session released what it did not hold" if $found && !$held;
    push @wrong, "$session was told LOST while it held" if !$found && $held && !$failed{$session};
    if ($inside{$session}) { $pending{$session}{release} = 1 if $found } else { delete $holder{$session} if $found }
}

sub renew {
    my ($session, $found) = @_;
    my $held = $holder{$session};
    push @wrong, "$session renewed what it did not hold" if $found && !$held;
    push @wrong, "$session could not renew what it held" if !$found && $held;
    delete $held->{expired} if $found && $held;
}

sub broken {
    my ($owner, $by) = @_;
    push @wrong, "a break took away what $owner did not hold" unless $holder{$owner};
    delete $holder{$owner};
    $highest++; # the break has bumped the token
    cross($by);
}

sub commit {
    my ($session) = @_;
    unless ($failed{$session}) {
        push @wrong, "$session committed under a guard that something had crossed"
            if $guarded{$session} && $crossed{$session};
        grant($session, $pending{$session}{grant}) if $pending{$session}{grant};
        delete $holder{$session} if $pending{$session}{release};
    }
    delete $_->{$session} for \%inside, \%failed, \%guarded, \%crossed, \%pending;
}

# What stands in the table at the end: nothing that no session holds, and all that one holds.
sub final {
    my (%standing) = @_;
    for my $owner (keys %standing) {
        push @wrong, "a grant of $owner was left behind" unless $holder{$owner} || $failed{$owner};
    }
    for my $owner (grep { !$holder{$_}{expired} } keys %holder) {
        push @wrong, "the grant of $owner has disappeared" unless $standing{$owner};
    }
}

sub judge_one {
    my ($name, $log) = @_;
    my ($order, $session, $step, $error, $expired, $in_final, @cells, %standing, @lines) = ('');
    my $reading = 0;
    my $finish_step = sub {
        step_done($session, $step, $error, @cells) if defined $step;
        undef $step;
        @cells = ();
        $error = 0;
    };
    my $finish_order = sub {
        return unless $order;
        $finish_step->();
        $count{orders}++;
        final(%standing);
        print "$name: $_, in: $order\n" for @wrong;
        $count{wrong} += @wrong;
        @wrong = ();
        %standing = ();
    };
    while (<$log>) {
        chomp;
        if (/^starting permutation: (.*)/) {
            $finish_order->();
            $order = $1;
            %holder = %failed = %inside = %pending = %guarded = %crossed = ();
            $highest = $floor = 0;
            # Session a has been granted its lock in its setup.
            if ($name =~ /^(held|expired)/) {
                %holder = (a => { token => 6, expired => $1 eq 'expired' });
                $highest = 6;
            }
            $highest = 5 if $name =~ /^free/;
        } elsif (/^step ([abc])_([A-Za-z]+)\d?: .*<waiting \.\.\.>$/) {
            $finish_step->();
            $count{waits}++;
        } elsif (/^step ([abc])_([A-Za-z]+)\d?:/) {
            $finish_step->();
            ($session, $step) = ($1, $2);
            $reading = 0;
        } elsif (/^(ERROR|FATAL|PANIC):/) {
            $error = 1;
            $count{errors}++;
            push @wrong, $_ unless /lock timeout|could not serialize|deadlock|aborted/;
        } elsif (/^-[-+]*$/) {
            $reading = 1; # the next line is the first row
        } elsif ($reading && /\|/ || $reading && /^\s*\S+\s*$/ && !/rows?\)$/) {
            my @row = map { s/^\s+|\s+$//gr } split /\|/, $_, -1;
            if ($row[0] eq 'final') {
                $standing{ $row[1] } = $row[2];
            } elsif (!@cells) {
                @cells = @row;
                $reading = 0;
            }
        } elsif (/^\(\d+ rows?\)$/) {
            $reading = 0;
            # Only the first statement of a step answers; what it remembers comes after that.
        } elsif (/timed out|invalid|^\w+: /) {
            push @wrong, $_ if $order;
        }
    }
    push @wrong, 'isolationtester printed no order' unless $order;
    $order ||= 'nothing';
    $finish_order->();
}

sub judge {
    my ($folder) = @_;
    $count{$_} = 0 for qw(orders grants guards waits wrong errors);
    for my $path (sort glob "'$folder/*.log'") {
        open my $log, '<', $path or die "$path: $!";
        judge_one($path =~ s{.*/|\.log$}{}gr, $log);
    }
    printf "%d orders, %d grants, %d guards, %d waits, %d errors\n", @count{qw(orders grants guards waits errors)};
    return $count{wrong} || !$count{orders} ? 1 : 0;
}

my ($verb, @arguments) = @ARGV;
exit judge(@arguments) if $verb eq 'judge';
write_specifications(@arguments);
