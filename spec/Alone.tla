--------------------------------- MODULE Alone ---------------------------------
(* Regions of one budget that are cut off from its store.  Each then admits so    *)
(* many units in each window of its own.  Such a window begins with the first     *)
(* units that are taken from it, and is as long as one of the store's by the      *)
(* fastest clock.  In a tick of the store a region's clock goes on by four        *)
(* quarters, or by Drift less or more.                                            *)
(*                                                                                *)
(* What the store grants is for Pool: here it is granted and used at once.        *)
EXTENDS Integers, FiniteSets
CONSTANTS N, Limit,
          Units, More,  \* of a region's own window; under other terms; 0: there are none
          Ticks, Drift,
          Margin,       \* guard: the drift is added
          Begins,       \* guard: a window begins with what is taken, not with the last one's end
          Cut,          \* guard: nothing is taken alone while the store answers
          Keep          \* guard: what was taken is known when the store is back
VARIABLES phase, used, reg
vars == <<phase, used, reg>>

Q == 4
R == 1..N
Max(a, b) == IF a > b THEN a ELSE b
RECURSIVE Sum(_, _)
Sum(f, S) == IF S = {} THEN 0 ELSE LET x == CHOOSE y \in S : TRUE IN f[x] + Sum(f, S \ {x})

\* cut: the store cannot be asked; was: at some time in the store's window; adm: alone, in it.
Fresh == [cut |-> FALSE, was |-> FALSE, other |-> FALSE, end |-> 0, taken |-> 0, adm |-> 0]
Init == phase = 0 /\ used = 0 /\ reg = [r \in R |-> Fresh]

Lasts == Ticks * (Q + IF Margin THEN 2 * Drift ELSE 0)
Has(x) == IF x.other THEN More ELSE Units
Grant(r) == ~reg[r].cut /\ used < Limit /\ used' = used + 1 /\ UNCHANGED <<phase, reg>>
Is(r, x) == reg' = [reg EXCEPT ![r] = x] /\ UNCHANGED <<phase, used>>
Break(r) == ~reg[r].cut /\ Is(r, [reg[r] EXCEPT !.cut = TRUE, !.was = TRUE])
Heal(r) == /\ reg[r].cut
           /\ Is(r, [reg[r] EXCEPT !.cut = FALSE, !.end = IF Keep THEN @ ELSE 0,
                                   !.taken = IF Keep THEN @ ELSE 0])
Change(r) == More > 0 /\ Is(r, [reg[r] EXCEPT !.other = ~@])
Take(r) == /\ reg[r].cut \/ ~Cut
           /\ \E k \in 1..(Has(reg[r]) - reg[r].taken) :
                  Is(r, [reg[r] EXCEPT !.end = IF @ = 0 THEN Lasts ELSE @,
                                       !.taken = @ + k, !.adm = @ + k])

Aged(x, quarters) ==
    LET end == Max(0, x.end - quarters)
        on == ~Begins /\ x.end > 0 /\ end = 0
    IN [x EXCEPT !.end = IF on THEN Lasts ELSE end, !.taken = IF end = 0 THEN 0 ELSE @]
Turned(x) == [x EXCEPT !.adm = 0, !.was = x.cut]
Paces == IF Drift = 0 THEN {Q} ELSE {Q - Drift, Q + Drift}
Tick == \E pace \in [R -> Paces] :
            LET older == [r \in R |-> Aged(reg[r], pace[r])] IN
            /\ phase' = (phase + 1) % Ticks
            /\ IF phase' = 0 THEN used' = 0 /\ reg' = [r \in R |-> Turned(older[r])]
               ELSE reg' = older /\ UNCHANGED used

Next == Tick \/ \E r \in R : Grant(r) \/ Break(r) \/ Heal(r) \/ Change(r) \/ Take(r)
Spec == Init /\ [][Next]_vars

Bound == 2 * Max(Units, More) - 1
\* Of a region that was cut off in the store's window, and of all together.
Alone == \A r \in R : reg[r].adm <= IF reg[r].was THEN Bound ELSE 0
PerWindow == used + Sum([r \in R |-> reg[r].adm], R) <= Limit + N * Bound
Reached == used + Sum([r \in R |-> reg[r].adm], R) < Limit + N * Bound     \* must be violated
================================================================================
